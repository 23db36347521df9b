"""The model itself under the contract of the graphs, with all that it says of the next token.

Shapes: S sentences, K beam, R = S·K rows, T source positions, V target vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman_training.data.batching import pad_ids
from dragoman_training.models import Seq2Seq


class TorchSteps:
    """Steps one row for each sentence, from its beginning."""

    def __init__(self, model: Seq2Seq, sources: Sequence[Sequence[int]], pad_id: int) -> None:
        self._model = model
        length_S = torch.tensor([len(source) for source in sources])
        self._memory, self._state = model.encode(pad_ids(sources, pad_id), length_S)

    def step(self, token_S1: Tensor) -> tuple[Tensor, Tensor]:
        """Reads a token for each sentence: log-probabilities [S, V] of what follows, and attention [S, T]."""
        features_SD, attention_S1T, self._state = self._model.step(token_S1, self._memory, self._state)
        return self._model.output(features_SD).float().log_softmax(dim=-1), attention_S1T[:, 0].float()

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Memory, and the state after the last step, by their names in the graphs."""
        memory = {f"memory.{name}": value.numpy() for name, value in self._memory.items()}
        return memory | {f"state.{name}": value.numpy() for name, value in self._state.items()}
