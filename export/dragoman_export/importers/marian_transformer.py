"""Marian's Transformer as ours: what stands where on both sides."""

import math

import numpy as np

from dragoman_export.importers.files import FormatError
from dragoman_export.importers.marian_items import Items
from dragoman_export.importers.marian_parameters import Parameters
from dragoman_export.importers.marian_settings import TransformerSettings
from dragoman_export.reference.imported import (
    BIAS,
    POSITIONS,
    TARGET_POSITIONS,
    AlignmentHead,
    Floats,
    Imported,
    TransformerArchitecture,
)

NORM_EPSILON = 1e-6


def read_transformer(items: Items, settings: TransformerSettings, *, max_positions: int) -> Imported:
    """The Transformer in a file, which begins translations with zeros: `bos` is one token beyond the others.

    Its embeddings are those of the file; `from_zero` adds that token. Raises FormatError.
    """
    width = settings.embedding_size
    if width % settings.heads or width % 2 or width < 4:
        raise FormatError(
            f"{items.path}: dim-emb is {width}, which is no even number that transformer-heads, "
            f"{settings.heads}, divides"
        )
    parameters = Parameters(items)
    parameters.tables(
        tied_source=settings.tied_source,
        tied_output=settings.tied_output,
        width=width,
        output="decoder_ff_logit_out",
        bias="decoder_ff_logit_out_b" if settings.has_output_bias else "",
    )
    reader = _Reader(parameters, settings)
    for side, count in (("encoder", settings.encoder_layers), ("decoder", settings.decoder_layers)):
        for number in range(count):
            reader.layer(side, number)
        if settings.has_top_norm:
            reader.norm(f"{side}_norm", f"{side}_top", "")
    parameters.check_all_read()
    table_LD = sinusoids(max_positions, width)
    tables = {POSITIONS: table_LD, TARGET_POSITIONS: table_LD}
    pieces = len(parameters.weights[BIAS])
    return Imported(
        architecture=TransformerArchitecture(
            width=width,
            heads=settings.heads,
            feed_forward=settings.feed_forward,
            encoder_layers=settings.encoder_layers,
            decoder_layers=settings.decoder_layers,
            past=settings.past,
            norm=settings.norm,
            activation=settings.activation,
            embedding_scale=math.sqrt(width),
            norm_epsilon=NORM_EPSILON,
            # What Marian aligns words by.
            alignment_head=AlignmentHead(layer=settings.alignment_layer, head=0),
            bos=pieces,
            never_produced=(pieces,),
        ),
        weights=parameters.weights | tables,
        stored=parameters.stored,
        steps=parameters.steps,
    )


def sinusoids(num_positions: int, width: int) -> Floats:
    """Sines of all wavelengths, from 2π to 20000π with both ends, and their cosines behind them: [L, D]."""
    half = width // 2
    angles = np.arange(num_positions)[:, None] * np.exp(-np.arange(half) * math.log(10000.0) / (half - 1))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


class _Reader:
    """Reads layers."""

    def __init__(self, parameters: Parameters, settings: TransformerSettings) -> None:
        self._parameters = parameters
        self._settings = settings
        self._width = settings.embedding_size

    def layer(self, side: str, number: int) -> None:
        """A layer of "encoder" or "decoder", from 0 on."""
        theirs, ours = f"{side}_l{number + 1}", f"{side}_layers.{number}"
        parameters, width, units = self._parameters, self._width, self._settings.feed_forward
        if side == "encoder":
            self._linear(f"{ours}.attention.input", f"{theirs}_self", "qkv")
            self._linear(f"{ours}.attention.output", f"{theirs}_self", "o")
            self._sublayer_norm(f"{ours}.attention_residual", f"{theirs}_self_Wo")
        else:
            if self._settings.past == "ssru":
                names = [f"{theirs}_rnn_Wf", f"{theirs}_rnn_W"]
                parameters.matrix(f"{ours}.ssru.input.weight", names, outputs=2 * width, inputs=width)
                parameters.vector(f"{ours}.ssru.input.bias", [f"{theirs}_rnn_bf", ""], 2 * width)
                prefix = "rnn" if self._settings.norm == "pre" else "rnn_ffn"
                self._sublayer_norm(f"{ours}.self_residual", f"{theirs}_{prefix}")
            else:
                self._linear(f"{ours}.self_attention.input", f"{theirs}_self", "qkv")
                self._linear(f"{ours}.self_attention.output", f"{theirs}_self", "o")
                self._sublayer_norm(f"{ours}.self_residual", f"{theirs}_self_Wo")
            self._linear(f"{ours}.cross_attention.query", f"{theirs}_context", "q")
            self._linear(f"{ours}.cross_attention.memory", f"{theirs}_context", "kv")
            self._linear(f"{ours}.cross_attention.output", f"{theirs}_context", "o")
            self._sublayer_norm(f"{ours}.cross_residual", f"{theirs}_context_Wo")
        for part, place, outputs, inputs in (("expand", 1, units, width), ("contract", 2, width, units)):
            name = f"{ours}.feed_forward.{part}"
            parameters.matrix(f"{name}.weight", [f"{theirs}_ffn_W{place}"], outputs=outputs, inputs=inputs)
            parameters.vector(f"{name}.bias", [f"{theirs}_ffn_b{place}"], outputs)
        self._sublayer_norm(f"{ours}.feed_forward_residual", f"{theirs}_ffn_ffn")

    def norm(self, ours: str, theirs: str, suffix: str) -> None:
        """A layer normalisation."""
        for name, part in (("weight", "scale"), ("bias", "bias")):
            self._parameters.vector(f"{ours}.{name}", [f"{theirs}_ln_{part}{suffix}"], self._width)

    def _sublayer_norm(self, ours: str, theirs: str) -> None:
        self.norm(f"{ours}.norm", theirs, "_pre" if self._settings.norm == "pre" else "")

    def _linear(self, ours: str, theirs: str, letters: str) -> None:
        outputs = len(letters) * self._width
        names = [f"{theirs}_W{letter}" for letter in letters]
        self._parameters.matrix(f"{ours}.weight", names, outputs=outputs, inputs=self._width)
        self._parameters.vector(f"{ours}.bias", [f"{theirs}_b{letter}" for letter in letters], outputs)
