"""A reference behind the beam search, and stepped along given tokens.

Shapes: S sentences, K beam, C = 2K candidates, T source positions, V target vocabulary.
"""

from typing import Any

import numpy as np
from dragoman_bundle.search import Candidates, Scores, Sentences, pad_rows
from numpy.typing import NDArray

from dragoman_export.reference.imported import Imported, TransformerArchitecture
from dragoman_export.reference.model import Array, Arrays, Ids, Reference, ReferenceModel
from dragoman_export.reference.s2s import S2SReference
from dragoman_export.reference.transformer import TransformerReference


def reference_of(imported: Imported, *, products: type[np.floating[Any]] = np.float64) -> Reference:
    """The reference of a model's family, which multiplies in `products`."""
    is_transformer = isinstance(imported.architecture, TransformerArchitecture)
    return (TransformerReference if is_transformer else S2SReference)(imported, products=products)


class ReferenceStepper:
    """Steps a reference."""

    def __init__(self, reference: ReferenceModel, *, source_pad_id: int, eos_id: int) -> None:
        self._reference = reference
        self._source_pad_id = source_pad_id
        self.bos_id = reference.bos
        self.eos_id = eos_id
        self.vocabulary_size = reference.vocabulary_size

    def encode(self, sources: Sentences) -> tuple[Arrays, Arrays]:
        """Memory and first state of sentences."""
        length_S = np.array([len(source) for source in sources], np.int64)
        return self._reference.encode(pad_rows(sources, self._source_pad_id), length_S)

    def step(
        self, context: tuple[Arrays, Arrays], token_SK: Ids, parent_SK: Ids, score_SK: Scores
    ) -> tuple[Candidates, tuple[Arrays, Arrays]]:
        """Advances every row and returns each sentence's 2K best continuations."""
        memory, state = context
        sentences, beam = token_SK.shape
        state = {name: value[parent_SK.reshape(-1)] for name, value in state.items()}
        logits_RV, _, state = self._reference.step(token_SK, memory, state)
        scores_RV = self._reference.token_scores(logits_RV) + score_SK.reshape(-1, 1)
        scores_SX = scores_RV.reshape(sentences, -1)
        best_SC = np.argpartition(scores_SX, -2 * beam, axis=1)[:, -2 * beam :]
        # Of equal ones the first goes first.
        best_SC.sort(axis=1)
        order_SC = np.argsort(-np.take_along_axis(scores_SX, best_SC, axis=1), axis=1, kind="stable")
        index_SC = np.take_along_axis(best_SC, order_SC, axis=1)
        score_SC = np.take_along_axis(scores_SX, index_SC, axis=1)
        return Candidates(score_SC=score_SC.astype(np.float32), index_SC=index_SC), (memory, state)

    def select(self, context: tuple[Arrays, Arrays], sentences: Ids) -> tuple[Arrays, Arrays]:
        """The context of some of its sentences."""
        memory, state = context
        return {name: value[sentences] for name, value in memory.items()}, state


class ReferenceSteps:
    """A reference, from the beginning of sentences."""

    def __init__(self, reference: ReferenceModel, sources: Sentences, pad_id: int) -> None:
        self._reference = reference
        length_S = np.array([len(source) for source in sources])
        self._memory, self._state = reference.encode(pad_rows(sources, pad_id), length_S)

    def step(self, token_S1: Ids) -> tuple[Array, Array]:
        """Reads a token for each sentence: log-probabilities [S, V] of what follows, and attention [S, T]."""
        logits_SV, attention_S1T, self._state = self._reference.step(token_S1, self._memory, self._state)
        return self._reference.token_scores(logits_SV), attention_S1T[:, 0]

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Memory, and the state after the last step, by their names in the graphs."""
        memory = {f"memory.{name}": value for name, value in self._memory.items()}
        return memory | {f"state.{name}": value for name, value in self._state.items()}
