"""`special:model.yml`: what kind of model it is. All in it is read, known to change nothing, or refused.

Owns Marian's options. Must not know parameters.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

from dragoman_export.importers.files import FormatError
from dragoman_export.reference.imported import (
    Activation,
    AlignmentHead,
    Architecture,
    Norm,
    Past,
    S2SArchitecture,
    TransformerArchitecture,
)

Value = TypeVar("Value", int, str, bool)

ACTIVATIONS: dict[str, Activation] = {"relu": "relu", "swish": "swish", "gelu": "gelu-sigmoid"}
"""Marian's names, and ours."""
TYPES = ("transformer", "s2s")
_LABELS = (
    *("version", "max-length", "bert-train-type-embeddings", "bert-type-vocab-size", "separator-symbol"),
    *("ulr-dim-emb", "ulr-trainable-transformation", "lemma-dependency", "factors-combine", "input-reorder"),
    *("transformer-depth-scaling", "char-stride", "char-highway", "char-conv-filters-num"),
    *("char-conv-filters-widths", "input-join-fields", "dim-vocabs", "transformer-aan-activation"),
    *("transformer-aan-depth", "transformer-aan-nogate", "transformer-dim-aan"),
)
"""Options that change nothing of a model that is read here."""
_FLAGS = (
    *("right-left", "ulr", "transformer-alibi-shift", "transformer-alibi-trainable", "transformer-no-affine"),
    *("transformer-disable-position-embeddings", "transformer-no-bias", "transformer-no-projection"),
    *("transformer-pool", "transformer-rnn-projection", "transformer-train-position-embeddings"),
    "transformer-train-positions",
)
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    **dict.fromkeys(_FLAGS, (False,)),
    **dict.fromkeys(("input-types", "output-approx-knn", "transformer-tied-layers"), ([], None)),
    **dict.fromkeys(("factors-dim-emb", "lemma-dim-emb"), (0,)),
    "original-type": (),
    "transformer-attention-mask": ("default",),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2),
}
"""Other options, and their values that change nothing; a Transformer's are nothing to an s2s."""
_OF_S2S = (
    *("dim-rnn", "enc-cell", "enc-cell-depth", "enc-type", "dec-cell", "dec-cell-base-depth"),
    *("dec-cell-high-depth", "skip", "layer-normalization"),
)
"""Options that are nothing to a Transformer."""
NORM_EPSILON = 1e-6


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a configuration says of a model."""

    architecture: Architecture
    """The architecture without the token that begins a translation, which no configuration names."""
    tied_source: bool
    tied_output: bool
    """Whether the output layer's matrix is the target embedding."""
    has_output_bias: bool
    has_norms: bool
    """Whether each stack of a Transformer ends with a norm, or every product of an s2s is normalised."""


def read_options(content: bytes, source: str) -> dict[Any, Any]:
    """Options in YAML. Raises FormatError, which names their source, where they are none."""
    try:
        options = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise FormatError(f"{source} is no YAML: {error}") from error
    if not isinstance(options, dict):
        raise FormatError(f"{source} is no YAML of options")
    return options


def read_settings(path: Path, configuration: bytes) -> Settings:
    """The settings of a model. Raises FormatError, naming the option, for what is not known here."""
    return _Options(path, read_options(configuration, f"{path}: its configuration")).settings()


class _Options:
    def __init__(self, path: Path, options: Mapping[Any, Any]) -> None:
        self._path = path
        self._options = options
        self._read: set[str] = set()

    def settings(self) -> Settings:
        is_transformer = self._choice("type", "", {kind: kind for kind in TYPES}) == "transformer"
        of_others = _OF_S2S if is_transformer else [name for name in self._options if "transformer" in name]
        for name, value in self._options.items():
            if name not in of_others and value not in _NEUTRAL.get(name, (value,)):
                self._refuse(name, "is not supported")
        settings = self._transformer() if is_transformer else self._recurrent()
        for name in self._options:
            if name not in {*self._read, *_NEUTRAL, *_LABELS, *of_others}:
                self._refuse(name, "is not known; a model that it says nothing of can be imported without")
        return settings

    def _settings(self, architecture: Architecture, *, has_norms: bool) -> Settings:
        is_all, tied_source, tied_output = (
            self._get(f"tied-embeddings{which}", False) for which in ("-all", "-src", "")
        )
        return Settings(
            architecture=architecture,
            tied_source=is_all or tied_source,
            tied_output=is_all or tied_output,
            has_output_bias=not self._get("output-omit-bias", False),
            has_norms=has_norms,
        )

    def _transformer(self) -> Settings:
        pasts: dict[str, Past] = {"self-attention": "self-attention", "rnn": "ssru"}
        past = self._choice("transformer-decoder-autoreg", "self-attention", pasts)
        if past == "ssru":
            self._choice("dec-cell", "", {"ssru": "ssru"})
            if self._get("layer-normalization", False):
                self._refuse("layer-normalization", "with SSRU is not supported")
        units = self._count("transformer-dim-ffn")
        if self._get("transformer-decoder-dim-ffn", 0) not in (0, units):
            self._refuse("transformer-decoder-dim-ffn", f"is not transformer-dim-ffn, {units}: not supported")
        around: dict[tuple[str, str], Norm] = {("", "an"): "post", ("n", "a"): "pre"}
        steps = (self._steps("transformer-preprocess", ""), self._steps("transformer-postprocess", "dan"))
        if steps not in around:
            before = self._get("transformer-preprocess", "")
            self._refuse(
                "transformer-postprocess",
                f"with transformer-preprocess {before!r} is not supported; known are 'dan' after each "
                "sublayer, and 'n' before with 'da' after it",
            )
        if self._steps("transformer-postprocess-emb", "d"):
            self._refuse("transformer-postprocess-emb", "is not supported; known is 'd'")
        top = self._steps("transformer-postprocess-top", "")
        if top not in ("", "n"):
            self._refuse("transformer-postprocess-top", "is not supported; known are '' and 'n'")
        layer = self._get("transformer-guided-alignment-layer", "last", str, int)
        layers = self._count("dec-depth")
        number = layers if layer == "last" else int(layer) if str(layer).isdecimal() else 0
        if not 0 < number <= layers:
            self._refuse("transformer-guided-alignment-layer", f"is no layer of {layers}")
        width, heads = self._count("dim-emb"), self._count("transformer-heads")
        if width % heads or width % 2 or width < 4:
            self._refuse("dim-emb", f"is no even number that transformer-heads, {heads}, divides")
        architecture = TransformerArchitecture(
            width=width,
            heads=heads,
            feed_forward=units,
            encoder_layers=self._count("enc-depth"),
            decoder_layers=layers,
            past=past,
            norm=around[steps],
            activation=self._choice("transformer-ffn-activation", "swish", ACTIVATIONS),
            embedding_scale=math.sqrt(width),
            norm_epsilon=NORM_EPSILON,
            # What Marian aligns words by.
            alignment_head=AlignmentHead(layer=number - 1, head=0),
        )
        return self._settings(architecture, has_norms=top == "n")

    def _recurrent(self) -> Settings:
        cells = {"gru": "gru", "gru-nematus": "gru-nematus"}
        found = {self._choice(f"{side}-cell", "gru", cells) for side in ("enc", "dec")}
        has_norms = self._get("layer-normalization", False)
        if has_norms and "gru-nematus" in found:
            self._refuse("layer-normalization", "with gru-nematus is not supported; with gru it is")
        both_ways = {"bidirectional": True, "bi-unidirectional": False}
        architecture = S2SArchitecture(
            embedding_size=self._count("dim-emb"),
            units=self._count("dim-rnn"),
            encoder_layers=self._count("enc-depth"),
            both_ways=self._choice("enc-type", "bidirectional", both_ways),
            encoder_cells=self._count("enc-cell-depth", 1),
            decoder_layers=self._count("dec-depth"),
            base_cells=self._count("dec-cell-base-depth", 2),
            high_cells=self._count("dec-cell-high-depth", 1),
            skip=self._get("skip", False),
        )
        return self._settings(architecture, has_norms=has_norms)

    def _steps(self, name: str, default: str) -> str:
        """What is done around a sublayer, without dropout."""
        return str(self._get(name, default) or "").replace("d", "")

    def _count(self, name: str, default: int = 0) -> int:
        value = self._get(name, default)
        if value < 1:
            self._refuse(name, "is missing or less than 1")
        return value

    def _choice(self, name: str, default: str, known: Mapping[str, Any]) -> Any:
        value = self._get(name, default)
        if value not in known:
            self._refuse(name, f"is not supported; known are {', '.join(known)}")
        return known[value]

    def _get(self, name: str, default: Value, *kinds: type) -> Value:
        self._read.add(name)
        value = self._options.get(name, default)
        if type(value) not in (kinds or (type(default),)):
            self._refuse(name, f"is no {type(default).__name__}")
        return value

    def _refuse(self, name: str, why: str) -> None:
        raise FormatError(f"{self._path}: {name} is {self._options.get(name)!r}, which {why}")
