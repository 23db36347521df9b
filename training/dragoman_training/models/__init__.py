"""The model families, each faithful to its paper, all under one interface."""

from collections.abc import Callable
from typing import Any

from dragoman_training.models.bahdanau import Bahdanau, BahdanauConfig
from dragoman_training.models.language_model import LanguageModel, LanguageModelConfig
from dragoman_training.models.layers.embedding import VocabularyShape
from dragoman_training.models.luong import Luong, LuongConfig
from dragoman_training.models.multi_head import MultiHead, MultiHeadConfig
from dragoman_training.models.plain import Plain, PlainConfig
from dragoman_training.models.seq2seq import Seq2Seq, Tensors
from dragoman_training.models.structured import Structured, StructuredConfig
from dragoman_training.models.transformer import Transformer, TransformerConfig

RecurrentConfig = PlainConfig | LuongConfig | BahdanauConfig | MultiHeadConfig | StructuredConfig
ModelConfig = RecurrentConfig | TransformerConfig | LanguageModelConfig

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


_FAMILIES: dict[type[ModelConfig], Callable[[Any, VocabularyShape], Seq2Seq]] = {
    PlainConfig: Plain,
    LuongConfig: Luong,
    BahdanauConfig: Bahdanau,
    MultiHeadConfig: MultiHead,
    StructuredConfig: Structured,
    TransformerConfig: Transformer,
    LanguageModelConfig: LanguageModel,
}


def build_model(config: ModelConfig, vocabulary: VocabularyShape) -> Seq2Seq:
    """A model of the config's family with fresh parameters."""
    return _FAMILIES[type(config)](config, vocabulary)
