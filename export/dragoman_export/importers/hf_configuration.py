"""What a checkpoint says of itself in config.json, with Hugging Face's defaults for what it does not say."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dragoman_export.importers.files import FormatError
from dragoman_export.reference.imported import Activation, AlignmentHead, TransformerArchitecture

ACTIVATIONS: dict[str, Activation] = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
"""Hugging Face's names, and ours."""
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
"""By type; NLLB's models are of M2M100's."""


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
            never_produced=(),
        ),
        source_size=numbers["vocab_size"],
        target_size=numbers["decoder_vocab_size"],
        max_positions=numbers["max_position_embeddings"],
        shares_embeddings=bool(config.get("share_encoder_decoder_embeddings", True)),
        ties_output=bool(config.get("tie_word_embeddings", True)),
        pad=numbers["pad_token_id"],
        eos=numbers["eos_token_id"],
    )
