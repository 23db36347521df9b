"""What a checkpoint says of itself beside its weights and tokenizer.

Its config.json, with Hugging Face's defaults for what it does not say; and of a release of OPUS-MT its
languages and its licence.

Which files a release has depends on its year. Those of the first have a tokenizer_config.json of their own,
those of the Tatoeba challenge a metadata.json too, and those for Marian itself neither.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dragoman_export.importers.files import FormatError
from dragoman_export.reference.imported import Activation

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
    """Sizes and settings of a Transformer."""

    type: Literal["marian", "m2m_100"]
    source_size: int
    target_size: int
    width: int
    heads: int
    feed_forward: int
    encoder_layers: int
    decoder_layers: int
    max_positions: int
    activation: Activation
    scales_embedding: bool
    shares_embeddings: bool
    ties_output: bool
    start: int
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
    return Configuration(
        type=kind,
        source_size=numbers["vocab_size"],
        target_size=numbers["decoder_vocab_size"],
        width=width,
        heads=heads,
        feed_forward=numbers["encoder_ffn_dim"],
        encoder_layers=numbers["encoder_layers"],
        decoder_layers=numbers["decoder_layers"],
        max_positions=numbers["max_position_embeddings"],
        activation=ACTIVATIONS[activation],
        scales_embedding=bool(scales_embedding),
        shares_embeddings=bool(config.get("share_encoder_decoder_embeddings", True)),
        ties_output=bool(config.get("tie_word_embeddings", True)),
        start=numbers["decoder_start_token_id"],
        pad=numbers["pad_token_id"],
        eos=numbers["eos_token_id"],
    )


METADATA_FILE = "metadata.json"
_METADATA_KEYS = {
    "source": ("src_alpha2", "source_languages", "src_alpha3"),
    "target": ("tgt_alpha2", "target_languages", "tgt_alpha3"),
}
_ONE_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*")


def find_language(
    name: str, *, tokenizer_config: Mapping[str, Any], metadata: Mapping[str, Any], side: str
) -> str:
    """The language of "source" or "target". Raises FormatError where no file names one.

    The tokenizer's own word goes first. Of metadata.json a list of several languages is none.
    """
    named = [tokenizer_config.get(f"{side}_lang"), *(metadata.get(key) for key in _METADATA_KEYS[side])]
    if isinstance(named[0], str) and named[0]:
        return named[0]
    for language in named[1:]:
        if isinstance(language, str) and _ONE_LANGUAGE.fullmatch(language):
            return language
    raise FormatError(
        f"{name}: neither tokenizer_config.json nor {METADATA_FILE} names one {side} language; give it with "
        f"--{side}-language"
    )


def find_licence(card: str) -> str:
    """What the model card's head says of its licence."""
    found = re.search(r"^license:\s*(\S.*)$", card, re.MULTILINE)
    return found[1].strip() if found else ""
