"""A model in a few words, from its settings."""

from dragoman_training.models import (
    BahdanauConfig,
    LuongConfig,
    ModelConfig,
    MultiHeadConfig,
    PlainConfig,
    StructuredConfig,
    TransformerConfig,
)


def describe_model(config: ModelConfig) -> str:
    """Its family and what sets it apart within it."""
    match config:
        case PlainConfig():
            order = "source reversed" if config.reverse_source else "source not reversed"
            cells = {"lstm": "", "gru": "GRU, ", "rnn": "simple recurrent, ", "rnn-relu": "ReLU recurrent, "}
            return f"plain, {cells[config.cell]}{config.layers} layers, no attention, {order}"
        case LuongConfig():
            window = f", window {config.window}" if config.window else ""
            feeding = "input feeding" if config.input_feeding else "no input feeding"
            return f"Luong, {config.attention} attention{window}, {config.score} score, {feeding}"
        case BahdanauConfig():
            return f"Bahdanau, {config.cell.upper()}"
        case MultiHeadConfig():
            return f"recurrent decoder, {config.heads} heads"
        case StructuredConfig():
            return f"structured self-attention, {config.annotations} vectors"
        case TransformerConfig():
            layers = f"{config.encoder_layers} + {config.decoder_layers} layers"
            return f"Transformer, {config.norm}-norm, {layers}, {config.heads} heads"
        case _:
            return config.family
