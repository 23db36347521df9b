"""A checkpoint's parameters by the names of our Transformer's, and its settings as ours.

Owns what stands where on both sides. MarianMT normalises after each sublayer, M2M100 before, and at the end
of each side.
"""

import math
from collections.abc import Iterable, Mapping

import numpy as np

from dragoman_export.importers.files import FormatError
from dragoman_export.importers.hf_configuration import Configuration
from dragoman_export.importers.weights import share_equal, sinusoids
from dragoman_export.reference.imported import (
    BIAS,
    OUTPUT,
    POSITIONS,
    SOURCE,
    TARGET,
    TARGET_POSITIONS,
    AlignmentHead,
    Floats,
    Imported,
    TransformerArchitecture,
)

_PARTS = {
    "self_attn.{q,k,v}_proj": "{own}.input",
    "self_attn.out_proj": "{own}.output",
    "self_attn_layer_norm": "{own}_residual.norm",
    "encoder_attn.q_proj": "cross_attention.query",
    "encoder_attn.{k,v}_proj": "cross_attention.memory",
    "encoder_attn.out_proj": "cross_attention.output",
    "encoder_attn_layer_norm": "cross_residual.norm",
    "fc1": "feed_forward.expand",
    "fc2": "feed_forward.contract",
    "final_layer_norm": "feed_forward_residual.norm",
}
"""Their modules of a layer and ours, of which those of several stand one below the other."""


def transformer(
    name: str, config: Configuration, tensors: Mapping[str, Floats], never_produced: Iterable[int]
) -> Imported:
    """The model of a checkpoint.

    Raises FormatError where weights are missing, too many or of other sizes.

    MarianMT's alignments are those of the last layer's first head: what Marian gives out, and what many of
    OPUS-MT's models were trained to align with (`--guided-alignment`).
    """
    reader = _Reader(name, tensors)
    embeddings = reader.embeddings(config)
    is_marian = config.type == "marian"
    if is_marian:
        table_LD = sinusoids(config.max_positions, config.width)
        bias_V = reader.read("final_logits_bias", (1, config.target_size)).reshape(-1)
    else:
        table_LD = _positions_from_two(config.max_positions, config.width)
        bias_V = np.zeros(config.target_size, np.float32)
    positions = [
        tensors.get(f"model.{side}.embed_positions.weight", table_LD) for side in ("encoder", "decoder")
    ]
    weights = dict(
        zip((SOURCE, TARGET, OUTPUT, POSITIONS, TARGET_POSITIONS), (*embeddings, *positions), strict=True)
    )
    weights[BIAS] = bias_V
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for number in range(layers):
            reader.layer(side, number, config, weights)
        for kind in () if is_marian else ("weight", "bias"):
            weights[f"{side}_norm.{kind}"] = reader.read(f"model.{side}.layer_norm.{kind}", (config.width,))
    unsaid = tuple(sorted(never_produced))
    reader.check()
    return Imported(
        architecture=TransformerArchitecture(
            width=config.width,
            heads=config.heads,
            feed_forward=config.feed_forward,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            past="self-attention",
            norm="post" if is_marian else "pre",
            activation=config.activation,
            embedding_scale=math.sqrt(config.width) if config.scales_embedding else 1.0,
            # Unlike our own models, these may produce the unknown token.
            alignment_head=AlignmentHead(layer=config.decoder_layers - 1, head=0) if is_marian else None,
            bos=config.start,
            never_produced=unsaid if is_marian else (),
            barred=() if is_marian else unsaid,
        ),
        weights=share_equal(weights),
    )


def _positions_from_two(num_positions: int, width: int) -> Floats:
    """The positions of fairseq, whose first is 2: [L, D]. Their wavelengths are others than Marian's."""
    half = width // 2
    angle_LH = np.arange(2, num_positions + 2)[:, None] * np.exp(
        np.arange(half) * -(math.log(10000) / (half - 1))
    )
    table_LD = np.concatenate([np.sin(angle_LH), np.cos(angle_LH)], axis=1).astype(np.float32)
    return np.pad(table_LD, ((0, 0), (0, width % 2)))


class _Reader:
    """Takes tensors by name, and remembers which were taken and which were missed."""

    def __init__(self, name: str, tensors: Mapping[str, Floats]) -> None:
        self._name = name
        self._tensors = tensors
        self._read: set[str] = set()

    def read(self, name: str, shape: tuple[int, ...]) -> Floats:
        """A tensor of that shape; zeros where there is none, until `check` says so."""
        self._read.add(name)
        if name not in self._tensors:
            return np.zeros(shape, np.float32)
        found = self._tensors[name]
        if found.shape != shape or found.dtype != np.float32:
            raise FormatError(
                f"{self._name}: its weights are damaged, or do not fit its config.json: {name} is "
                f"{list(found.shape)} of {found.dtype}, and {list(shape)} of float32 is expected"
            )
        return found

    def embeddings(self, config: Configuration) -> tuple[Floats, Floats, Floats]:
        """Source's, target's, and the output layer's matrix."""
        sizes = (config.source_size, config.width), (config.target_size, config.width)
        if config.shares_embeddings:
            names = ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")
            source = target = self._first(names, sizes[1])
        else:
            source = self._first(("model.encoder.embed_tokens",), sizes[0])
            target = self._first(("model.decoder.embed_tokens", "lm_head"), sizes[1])
        return source, target, target if config.ties_output else self.read("lm_head.weight", sizes[1])

    def _first(self, modules: Iterable[str], shape: tuple[int, ...]) -> Floats:
        names = [f"{module}.weight" for module in modules]
        return self.read(next((name for name in names if name in self._tensors), names[0]), shape)

    def layer(self, side: str, number: int, config: Configuration, weights: dict[str, Floats]) -> None:
        """The parameters of a layer, put among ours."""
        own = "attention" if side == "encoder" else "self_attention"
        for theirs, ours in _PARTS.items():
            if side == "encoder" and theirs.startswith("encoder_attn"):
                continue
            name = f"{side}_layers.{number}.{ours.format(own=own)}".replace(
                "self_attention_residual", "self_residual"
            )
            before, _, choice = theirs.partition("{")
            letters, _, behind = choice.partition("}")
            modules = [f"{before}{letter}{behind}" for letter in letters.split(",")]
            outputs = config.feed_forward if theirs == "fc1" else config.width
            inputs = config.feed_forward if theirs == "fc2" else config.width
            for kind, shape in (("weight", (outputs, inputs)), ("bias", (outputs,))):
                shape = (outputs,) if theirs.endswith("layer_norm") else shape
                parts = [
                    self.read(f"model.{side}.layers.{number}.{module}.{kind}", shape) for module in modules
                ]
                weights[f"{name}.{kind}"] = parts[0] if len(parts) == 1 else np.concatenate(parts)

    def check(self) -> None:
        """Raises FormatError for what is missing, and for layers that the configuration has not."""
        found = self._tensors.keys()
        odd = sorted((self._read - found) | {name for name in found - self._read if ".layers." in name})
        if odd:
            raise FormatError(
                f"{self._name}: its weights are not those of its config.json: {odd[0]} is only in one of them"
            )
