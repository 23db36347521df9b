"""The model families, each faithful to its paper, all under one interface."""

from dragoman_training.models.bahdanau import Bahdanau, BahdanauConfig
from dragoman_training.models.language_model import LanguageModel, LanguageModelConfig
from dragoman_training.models.layers.embedding import VocabularyShape
from dragoman_training.models.luong import Luong, LuongConfig
from dragoman_training.models.multi_head import MultiHead, MultiHeadConfig
from dragoman_training.models.plain import Plain, PlainConfig
from dragoman_training.models.seq2seq import Seq2Seq, Tensors
from dragoman_training.models.structured import Structured, StructuredConfig
from dragoman_training.models.transformer import Transformer, TransformerConfig

ModelConfig = (
    PlainConfig
    | LuongConfig
    | BahdanauConfig
    | MultiHeadConfig
    | StructuredConfig
    | TransformerConfig
    | LanguageModelConfig
)

__all__ = [
    "Bahdanau",
    "BahdanauConfig",
    "LanguageModel",
    "LanguageModelConfig",
    "Luong",
    "LuongConfig",
    "ModelConfig",
    "MultiHead",
    "MultiHeadConfig",
    "Plain",
    "PlainConfig",
    "Seq2Seq",
    "Structured",
    "StructuredConfig",
    "Tensors",
    "Transformer",
    "TransformerConfig",
    "VocabularyShape",
    "build_model",
]


def build_model(config: ModelConfig, vocabulary: VocabularyShape) -> Seq2Seq:
    """A model of the config's family with fresh parameters."""
    match config:
        case PlainConfig():
            return Plain(config, vocabulary)
        case MultiHeadConfig():
            return MultiHead(config, vocabulary)
        case StructuredConfig():
            return Structured(config, vocabulary)
        case LuongConfig():
            return Luong(config, vocabulary)
        case BahdanauConfig():
            return Bahdanau(config, vocabulary)
        case TransformerConfig():
            return Transformer(config, vocabulary)
        case LanguageModelConfig():
            return LanguageModel(config, vocabulary)
