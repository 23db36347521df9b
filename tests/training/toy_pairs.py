"""Small corpora, vocabularies and models for the tests of training."""

from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_training.checkpoint import vocabulary_shape
from dragoman_training.data.corpus import Corpus
from dragoman_training.data.vocabulary import train_tokenizers
from dragoman_training.models import ModelConfig, Seq2Seq, build_model
from dragoman_training.recipe.data import VocabularyConfig

SOURCES = [
    "ein alter mann sieht den hund.",
    "der hund ruft.",
    "heute sucht ein junger vogel den kleinen fisch.",
    "der rote fisch findet morgen den mann.",
    "nie sieht der vogel den hund.",
    "oft ruft ein mann.",
] * 4
TARGETS = [
    "an old man sees the dog.",
    "the dog calls.",
    "today a young bird seeks the small fish.",
    "the red fish finds the man tomorrow.",
    "the bird never sees the dog.",
    "often a man calls.",
] * 4


def toy_corpus() -> Corpus:
    """Two dozen pairs."""
    return Corpus(SOURCES, TARGETS)


def toy_tokenizer() -> Tokenizer:
    """A unigram vocabulary of both sides, with longer pieces than characters."""
    return train_tokenizers(toy_corpus(), VocabularyConfig(size=55))[0]


def toy_model(config: ModelConfig, tokenizer: Tokenizer) -> Seq2Seq:
    """A model over that vocabulary."""
    return build_model(config, vocabulary_shape(tokenizer, tokenizer))
