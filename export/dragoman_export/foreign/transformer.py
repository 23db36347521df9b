"""Weights of a Transformer that was trained elsewhere, and our Transformer made of them.

Owns what our parameters are called and what follows from weights that are the same. Must not know whose they
were. Shapes: V vocabulary, L positions, D width.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman_training.models import Transformer, TransformerConfig, VocabularyShape
from dragoman_training.models.layers.transformer_layers import Positions
from dragoman_training.models.transformer import AlignmentHead

Floats = NDArray[np.float32]

SOURCE, TARGET, OUTPUT, BIAS = (
    "source_embedding.weight",
    "target_embedding.weight",
    "output.embedding.weight",
    "output.bias",
)


@dataclass(frozen=True, kw_only=True)
class ForeignTransformer:
    """Everything our Transformer needs to be the same model."""

    config: TransformerConfig
    """Sizes and settings; whether tables are shared follows from them."""
    parameters: Mapping[str, Floats]
    """By our names, with both embeddings and the output layer's matrix, whether or not they are the same."""
    source_positions_LD: Floats
    target_positions_LD: Floats
    embedding_scale: float
    """What embeddings are multiplied by."""
    norm_epsilon: float = 1e-5
    """What layer normalisation adds to a variance."""
    alignment_head: AlignmentHead | None = None

    @property
    def is_shared(self) -> bool:
        """Whether both sides have one embedding."""
        return np.array_equal(self.parameters[SOURCE], self.parameters[TARGET])

    def starting_from_zero(self) -> "ForeignTransformer":
        """The same with one target token more, the last: it begins sentences, and its embedding is 0.

        Where both sides have one embedding, that has the token too.
        """
        more = {OUTPUT, TARGET, *([SOURCE] if self.is_shared else [])}
        added = {name: np.pad(self.parameters[name], ((0, 1), (0, 0))) for name in more}
        added[BIAS] = np.pad(self.parameters[BIAS], (0, 1))
        return replace(self, parameters={**self.parameters, **added})


def make_transformer(
    foreign: ForeignTransformer, *, bos: int, never_produced: tuple[int, ...]
) -> Transformer:
    """Our Transformer with these weights, in evaluation mode."""
    parameters = dict(foreign.parameters)
    same_positions = np.array_equal(foreign.source_positions_LD, foreign.target_positions_LD)
    config = replace(
        foreign.config,
        positions="sinusoidal" if _are_sinusoids(foreign.source_positions_LD) else "learned",
        max_positions=len(foreign.source_positions_LD),
        shared_positions=same_positions,
        tied_output=np.array_equal(parameters[TARGET], parameters[OUTPUT]),
    )
    vocabulary = VocabularyShape(
        source_size=len(parameters[SOURCE]),
        target_size=len(parameters[TARGET]),
        shared=foreign.is_shared,
        bos=bos,
        never_produced=never_produced,
    )
    model = Transformer(config, vocabulary)
    model.embedding_scale = foreign.embedding_scale
    model.alignment_head = foreign.alignment_head
    with torch.no_grad():
        _fill(model.positions, foreign.source_positions_LD)
        if model.target_positions is not None:
            _fill(model.target_positions, foreign.target_positions_LD)
        for name, parameter in model.named_parameters():
            if not name.endswith("positions.table_LD"):
                parameter.copy_(_tensor(parameters[name]))
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = foreign.norm_epsilon
    return model.eval().requires_grad_(False)


def _fill(positions: Positions, table_LD: Floats) -> None:
    positions.table_LD.copy_(_tensor(table_LD))


def _tensor(array: Floats) -> Tensor:
    # A view of a file that is mapped can't be written to, which torch would warn of.
    return torch.from_numpy(np.array(array, np.float32))


def _are_sinusoids(table_LD: Floats) -> bool:
    """Whether its columns are pairs of a sine and a cosine, in whichever order."""
    return np.allclose(np.square(table_LD).sum(axis=1), table_LD.shape[1] / 2, rtol=1e-3)
