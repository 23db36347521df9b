"""The model families, each faithful to its paper, all under one interface."""

from dragoman_training.models.bahdanau import Bahdanau, BahdanauConfig
from dragoman_training.models.luong import Luong, LuongConfig
from dragoman_training.models.seq2seq import Seq2Seq, Tensors, VocabularyShape

ModelConfig = LuongConfig | BahdanauConfig

__all__ = [
    "Bahdanau",
    "BahdanauConfig",
    "Luong",
    "LuongConfig",
    "ModelConfig",
    "Seq2Seq",
    "Tensors",
    "VocabularyShape",
    "build_model",
]


def build_model(config: ModelConfig, vocabulary: VocabularyShape) -> Seq2Seq:
    """A model of the config's family with fresh parameters."""
    match config:
        case LuongConfig():
            return Luong(config, vocabulary)
        case BahdanauConfig():
            return Bahdanau(config, vocabulary)
