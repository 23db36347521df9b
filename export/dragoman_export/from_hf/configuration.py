"""What a MarianMT checkpoint's config.json says, with Hugging Face's defaults for what it does not say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman_export.from_hf.errors import MarianError
from dragoman_export.reference.imported import Activation

ACTIVATIONS: dict[str, Activation] = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
"""Hugging Face's names, and ours."""
_DEFAULTS = {
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
}


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Sizes and settings of a Transformer as Marian trains it."""

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
    """Raises MarianError where it is none of MarianMT, or says what our Transformer has no place for."""
    if config.get("model_type") != "marian":
        raise MarianError(f"{name} is a model of type {config.get('model_type')!r}, and not of MarianMT")
    numbers = {key: config.get(key, default) for key, default in _DEFAULTS.items()}
    numbers["decoder_vocab_size"] = config.get("decoder_vocab_size") or numbers["vocab_size"]
    for key, number in numbers.items():
        least = 0 if key.endswith("_id") else 1
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            raise MarianError(f"{name}: its config.json is none of a model: {key} is {number!r}")
    for key in ("attention_heads", "ffn_dim"):
        encoder, decoder = numbers[f"encoder_{key}"], numbers[f"decoder_{key}"]
        if encoder != decoder:
            raise MarianError(
                f"encoder_{key} is {encoder} and decoder_{key} {decoder}; only models with the same on "
                "both sides can be exported"
            )
    width, heads = numbers["d_model"], numbers["encoder_attention_heads"]
    if width % heads:
        raise MarianError(f"{name}: its {heads} heads do not divide its width, {width}")
    activation = config.get("activation_function", "gelu")
    if activation not in ACTIVATIONS:
        raise MarianError(f"activation_function is {activation!r}; known are {', '.join(ACTIVATIONS)}")
    return Configuration(
        source_size=numbers["vocab_size"],
        target_size=numbers["decoder_vocab_size"],
        width=width,
        heads=heads,
        feed_forward=numbers["encoder_ffn_dim"],
        encoder_layers=numbers["encoder_layers"],
        decoder_layers=numbers["decoder_layers"],
        max_positions=numbers["max_position_embeddings"],
        activation=ACTIVATIONS[activation],
        scales_embedding=bool(config.get("scale_embedding", False)),
        shares_embeddings=bool(config.get("share_encoder_decoder_embeddings", True)),
        ties_output=bool(config.get("tie_word_embeddings", True)),
        start=numbers["decoder_start_token_id"],
        pad=numbers["pad_token_id"],
        eos=numbers["eos_token_id"],
    )
