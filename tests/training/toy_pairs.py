"""Small corpora, vocabularies and models for the tests of training."""

import shutil
from pathlib import Path

import torch
from click.testing import CliRunner
from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_training.checkpoint import vocabulary_shape
from dragoman_training.cli import train
from dragoman_training.data.corpus import Corpus
from dragoman_training.data.vocabulary import train_tokenizers
from dragoman_training.models import ModelConfig, Seq2Seq, build_model
from dragoman_training.processes import Processes
from dragoman_training.recipe.data import DataConfig, VocabularyConfig
from dragoman_training.recipe.settings import Recipe
from dragoman_training.run.reporter import Reporter
from dragoman_training.run.run_folder import StopRequest
from dragoman_training.run.trainer import Trainer

DATA = DataConfig(
    source_language="de", target_language="en", train_tsv=("pairs.tsv",), valid_tsv=("pairs.tsv",)
)
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


def trainer_over(
    recipe: Recipe, tokenizer: Tokenizer, corpus: Corpus, folder: Path, reporter: Reporter, device: str
) -> Trainer:
    """One that trains and validates on the same pairs."""
    return Trainer(
        recipe,
        (tokenizer, tokenizer),
        corpus,
        corpus,
        folder=folder,
        processes=Processes(torch.device(device)),
        reporter=reporter,
        stop=StopRequest(),
    )


def part_of_toy(toy_folder: Path, folder: Path, num_train: int, num_valid: int) -> Path:
    """The toy's recipe in that folder, with so many of its pairs."""
    for split, num_pairs in (("train", num_train), ("valid", num_valid)):
        for language in ("de", "en"):
            lines = (toy_folder / f"{split}.{language}").read_text().splitlines(keepends=True)
            (folder / f"{split}.{language}").write_text("".join(lines[:num_pairs]))
    return Path(shutil.copy(toy_folder / "toy.toml", folder))


def run_training(*arguments: object) -> str:
    """What `dragoman train` says."""
    result = CliRunner().invoke(train, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def refusal(*arguments: object) -> str:
    """What `dragoman train` says when it refuses."""
    result = CliRunner().invoke(train, [str(argument) for argument in arguments])
    assert isinstance(result.exception, ValueError), result.output
    return str(result.exception)
