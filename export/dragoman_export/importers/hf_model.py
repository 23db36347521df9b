"""A checkpoint's Transformer as ours: config.json, with Hugging Face's defaults for what it does not say, and
the parameters by our names.

Owns what stands where on both sides.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dragoman_export.importers.files import FormatError
from dragoman_export.importers.subjects import even_sinusoids, share_equal, sinusoids, spelled
from dragoman_export.reference.imported import (
    Activation,
    AlignmentHead,
    Floats,
    Imported,
    Name,
    TransformerArchitecture,
    layer_parts,
)

ACTIVATIONS: dict[str, Activation] = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
_MARIAN: dict[str, Any] = {
    "vocab_size": 58101,
    "max_position_embeddings": 1024,
    "encoder_layers": 12,
    "decoder_layers": 12,
    "encoder_ffn_dim": 4096,
    "decoder_ffn_dim": 4096,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 16,
    "d_model": 1024,
    "decoder_start_token_id": 58100,
    "pad_token_id": 58100,
    "eos_token_id": 0,
    "activation_function": "gelu",
    "scale_embedding": False,
}
_DEFAULTS = {
    "marian": _MARIAN,
    "m2m_100": _MARIAN
    | {
        "vocab_size": 128112,
        "decoder_start_token_id": 2,
        "pad_token_id": 1,
        "eos_token_id": 2,
        "activation_function": "relu",
        "scale_embedding": True,
    },
}
"""The settings that a configuration leaves out, by type of model; NLLB's models are of M2M100's."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Sizes and settings of a Transformer. MarianMT normalises after each sublayer, M2M100 before.

    MarianMT's alignments are those of the last layer's first head: what Marian gives out, and what many of
    OPUS-MT's models were trained to align with (`--guided-alignment`).
    """

    type: Literal["marian", "m2m_100"]
    architecture: TransformerArchitecture
    source_size: int
    target_size: int
    max_positions: int
    shares_embeddings: bool
    ties_output: bool
    pad: int
    eos: int


def read_configuration(name: str, config: Mapping[str, Any]) -> Configuration:
    """Raises FormatError where it is of no known type, or says what our Transformer has no place for."""
    kind = config.get("model_type")
    if kind not in _DEFAULTS:
        raise FormatError(f"{name} is a model of type {kind!r}; known are {', '.join(_DEFAULTS)}")
    settings = {key: config.get(key, default) for key, default in _DEFAULTS[kind].items()}
    activation, scales_embedding = settings.pop("activation_function"), settings.pop("scale_embedding")
    numbers: dict[str, int] = settings
    numbers["decoder_vocab_size"] = config.get("decoder_vocab_size") or numbers["vocab_size"]
    for key, number in numbers.items():
        least = 0 if key.endswith("_id") else 1
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            raise FormatError(f"{name}: its config.json is none of a model: {key} is {number!r}")
    for key in ("attention_heads", "ffn_dim"):
        encoder, decoder = numbers[f"encoder_{key}"], numbers[f"decoder_{key}"]
        if encoder != decoder:
            raise FormatError(
                f"encoder_{key} is {encoder} and decoder_{key} {decoder}; only models with the same on "
                "both sides can be exported"
            )
    width, heads = numbers["d_model"], numbers["encoder_attention_heads"]
    if width % heads:
        raise FormatError(f"{name}: its {heads} heads do not divide its width, {width}")
    if activation not in ACTIVATIONS:
        raise FormatError(f"activation_function is {activation!r}; known are {', '.join(ACTIVATIONS)}")
    is_marian, layers = kind == "marian", numbers["decoder_layers"]
    return Configuration(
        type=kind,
        architecture=TransformerArchitecture(
            width=width,
            heads=heads,
            feed_forward=numbers["encoder_ffn_dim"],
            encoder_layers=numbers["encoder_layers"],
            decoder_layers=layers,
            past="self-attention",
            norm="post" if is_marian else "pre",
            activation=ACTIVATIONS[activation],
            embedding_scale=math.sqrt(width) if scales_embedding else 1.0,
            alignment_head=AlignmentHead(layer=layers - 1, head=0) if is_marian else None,
            bos=numbers["decoder_start_token_id"],
        ),
        source_size=numbers["vocab_size"],
        target_size=numbers["decoder_vocab_size"],
        max_positions=numbers["max_position_embeddings"],
        shares_embeddings=bool(config.get("share_encoder_decoder_embeddings", True)),
        ties_output=bool(config.get("tie_word_embeddings", True)),
        pad=numbers["pad_token_id"],
        eos=numbers["eos_token_id"],
    )


PARTS = {
    "self_attention.input": "self_attn.{q,k,v}_proj",
    "self_attention.output": "self_attn.out_proj",
    "self_residual.norm": "self_attn_layer_norm",
    "cross_attention.query": "encoder_attn.q_proj",
    "cross_attention.memory": "encoder_attn.{k,v}_proj",
    "cross_attention.output": "encoder_attn.out_proj",
    "cross_residual.norm": "encoder_attn_layer_norm",
    "feed_forward.expand": "fc1",
    "feed_forward.contract": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}
"""Our parts of a layer and their modules, of which those of several stand one below the other."""


def read_transformer(
    name: str, config: Configuration, tensors: Mapping[str, Floats], never_produced: Iterable[int]
) -> Imported:
    """The model of a checkpoint. Raises FormatError where weights are missing, too many or of other sizes."""
    reader, a, is_marian = _Reader(name, tensors), config.architecture, config.type == "marian"
    weights = dict(zip((Name.SOURCE, Name.TARGET, Name.OUTPUT), reader.embeddings(config), strict=True))
    positions = config.max_positions
    # fairseq's first position is 2, and its wavelengths are others than Marian's.
    table_LD = sinusoids(positions, a.width) if is_marian else even_sinusoids(positions, a.width, first=2)
    for ours, side in ((Name.POSITIONS, "encoder"), (Name.TARGET_POSITIONS, "decoder")):
        weights[ours] = tensors.get(f"model.{side}.embed_positions.weight", table_LD)
    weights[Name.BIAS] = np.zeros(config.target_size, np.float32)
    if is_marian:
        weights[Name.BIAS] = reader.read("final_logits_bias", (1, config.target_size)).reshape(-1)
    for part in layer_parts(a):
        modules = spelled(f"model.{part.side}.layers.{part.layer}.{PARTS[part.name]}")
        size = part.outputs // len(modules)
        for kind in ("weight", "bias"):
            shape = (size, part.inputs) if part.inputs and kind == "weight" else (size,)
            arrays = [reader.read(f"{module}.{kind}", shape) for module in modules]
            weights[f"{part.own_name}.{kind}"] = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    for side in () if is_marian else ("encoder", "decoder"):
        for kind in ("weight", "bias"):
            weights[f"{side}_norm.{kind}"] = reader.read(f"model.{side}.layer_norm.{kind}", (a.width,))
    reader.check()
    # Unlike our own models, these may produce the unknown token.
    unsaid = tuple(sorted(never_produced))
    architecture = replace(a, never_produced=unsaid) if is_marian else replace(a, barred=unsaid)
    return Imported(architecture=architecture, weights=share_equal(weights))


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
        width = config.architecture.width
        sizes = (config.source_size, width), (config.target_size, width)
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

    def check(self) -> None:
        """Raises FormatError for what is missing, and for layers that the configuration has not."""
        found = self._tensors.keys()
        odd = sorted((self._read - found) | {name for name in found - self._read if ".layers." in name})
        if odd:
            raise FormatError(
                f"{self._name}: its weights are not those of its config.json: {odd[0]} is only in one of them"
            )
