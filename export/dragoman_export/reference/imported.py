"""A model from elsewhere: its architecture, its weights by our names, and the codes of those in 8 bits.

Shapes: N outputs, K inputs of a matrix.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Past = Literal["self-attention", "ssru"]
Norm = Literal["pre", "post"]
Activation = Literal["relu", "gelu", "gelu-tanh", "gelu-sigmoid", "swish"]


class Name:
    """Names of the weights that are no layer's own; what is tied is the same array."""

    SOURCE, TARGET = "source_embedding.weight", "target_embedding.weight"
    OUTPUT, BIAS = "output.embedding.weight", "output.bias"
    POSITIONS, TARGET_POSITIONS = "positions.table_LD", "target_positions.table_LD"
    """A Transformer's vectors of positions."""


@dataclass(frozen=True, kw_only=True)
class AlignmentHead:
    """The head of a decoder's cross-attention that aligns words."""

    layer: int
    head: int


@dataclass(frozen=True, kw_only=True)
class TransformerArchitecture:
    """A Transformer; a norm ends a stack where the weights hold `encoder_norm` or `decoder_norm`."""

    family: Literal["transformer"] = "transformer"
    width: int
    heads: int
    feed_forward: int
    encoder_layers: int
    decoder_layers: int
    past: Past
    """How a decoder's layer knows what was said."""
    norm: Norm
    activation: Activation
    embedding_scale: float
    """What embeddings are multiplied by where they are read, not in the output layer."""
    norm_epsilon: float = 1e-5
    alignment_head: AlignmentHead | None = None
    """None for the mean over the heads of the last layer."""
    bos: int = 0
    """Target token that begins every translation; any where no file names it."""
    never_produced: tuple[int, ...] = ()
    """Target tokens that no translation holds, left out before probabilities are taken."""
    barred: tuple[int, ...] = ()
    """Others that none holds, left out after that, as Marian does: what they take, no other token gets."""


class Part(NamedTuple):
    """A linear layer, or a norm, of a Transformer's layer."""

    side: str
    """ "encoder" or "decoder"."""
    layer: int
    name: str
    """The layer's name as a decoder has it; `self_attention` and `self_residual` stand for an encoder's
    attention, too."""
    outputs: int
    inputs: int
    """0 of a norm."""

    @property
    def own_name(self) -> str:
        """The weights' name, without `.weight` and `.bias`."""
        name = self.name
        if self.side == "encoder":
            name = name.replace("self_attention", "attention").replace("self_residual", "attention_residual")
        return f"{self.side}_layers.{self.layer}.{name}"


def layer_parts(a: TransformerArchitecture) -> Iterator[Part]:
    """What the layers of a Transformer are made of; norms at the ends of its stacks are none of these."""
    width = a.width
    for side, num_layers in (("encoder", a.encoder_layers), ("decoder", a.decoder_layers)):
        is_decoder = side == "decoder"
        parts = {"self_attention.input": (3 * width, width), "self_attention.output": (width, width)}
        if is_decoder:
            parts = {"ssru.input": (2 * width, width)} if a.past == "ssru" else parts
            parts |= {
                "cross_attention.query": (width, width),
                "cross_attention.memory": (2 * width, width),
                "cross_attention.output": (width, width),
            }
        units = a.feed_forward
        parts |= {"feed_forward.expand": (units, width), "feed_forward.contract": (width, units)}
        residuals = ("self", "cross", "feed_forward") if is_decoder else ("self", "feed_forward")
        parts |= {f"{residual}_residual.norm": (width, 0) for residual in residuals}
        for layer in range(num_layers):
            yield from (Part(side, layer, name, *sizes) for name, sizes in parts.items())


@dataclass(frozen=True, kw_only=True)
class S2SArchitecture:
    """Marian's recurrent encoder-decoder with attention (Sennrich et al. 2017, "Nematus")."""

    family: Literal["s2s"] = "s2s"
    embedding_size: int
    units: int
    encoder_layers: int
    """Bidirectional ones where there are `both_ways`; else the first alone is, the others read forward."""
    both_ways: bool
    encoder_cells: int
    """Cells that a layer of the encoder applies one after the other."""
    decoder_layers: int
    base_cells: int
    """Cells of the decoder's first layer; attention comes behind the first of them."""
    high_cells: int
    """Cells of each other layer of the decoder."""
    skip: bool
    """Whether what goes into a layer is added to what comes out, from the second layer on."""
    norm_epsilon: float = 1e-9
    bos: int = 0
    never_produced: tuple[int, ...] = ()
    barred: tuple[int, ...] = ()


Architecture = TransformerArchitecture | S2SArchitecture


@dataclass(frozen=True)
class StoredWeight:
    """A matrix as its file has it: `codes` times `scale`, by output, is the weight."""

    codes_NK: NDArray[np.int8]
    scale_N: Floats

    def floats(self) -> Floats:
        """The weight itself."""
        return self.codes_NK * self.scale_N[:, None]

    def with_rows(self, number: int) -> "StoredWeight":
        """The same with so many rows more, of zeros."""
        return StoredWeight(
            np.pad(self.codes_NK, ((0, number), (0, 0))), np.pad(self.scale_N, (0, number), mode="edge")
        )


@dataclass(frozen=True, kw_only=True)
class Imported:
    """Everything that a model's decoding takes."""

    architecture: Architecture
    weights: Mapping[str, Floats]
    """The weights by the names of our Transformer's parameters; matrices are [outputs, inputs]."""
    stored: Mapping[str, StoredWeight] = field(default_factory=dict)
    """Those of the weights that the file has in 8 bits."""
    steps: Mapping[str, float] = field(default_factory=dict)
    """What rows count in that go into the product with a weight, where the file says it."""
