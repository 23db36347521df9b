"""Small corpora, vocabularies and models for the tests of training."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
import torch
from click import Command
from click.testing import CliRunner, Result
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from dragoman_training.checkpoint import vocabulary_shape
from dragoman_training.cli import train
from dragoman_training.data.corpus import Corpus
from dragoman_training.data.vocabulary import train_tokenizers
from dragoman_training.decoding.system import CheckpointSystem, open_checkpoint_system
from dragoman_training.models import ModelConfig, Seq2Seq, build_model
from dragoman_training.processes import Processes
from dragoman_training.recipe.data import DataConfig, VocabularyConfig
from dragoman_training.recipe.settings import Recipe
from dragoman_training.run.reporter import Reporter
from dragoman_training.run.run_folder import StopRequest
from dragoman_training.run.trainer import Trainer

DATA = DataConfig(
    source_language="de",
    target_language="en",
    train_source=("train.de",),
    train_target=("train.en",),
    valid_source=("val.de",),
    valid_target=("val.en",),
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


def long_but_for(soon: Iterable[str], names: Iterable[str]) -> list[Any]:
    """Parameters of which only some are tried each time."""
    return [pytest.param(name, marks=[] if name in soon else [pytest.mark.long]) for name in names]


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


def invoke(command: Command, *arguments: object, text: str | None = None) -> Result:
    """What a command does, with that text on its standard input."""
    return CliRunner().invoke(command, [str(argument) for argument in arguments], input=text)


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What a training shows on its board: by name, steps and values."""
    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    names = events.Tags()["scalars"]
    return {name: [(event.step, event.value) for event in events.Scalars(name)] for name in names}


def run_training(*arguments: object) -> str:
    """What `dragoman train` says."""
    result = invoke(train, *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def refusal(*arguments: object, command: Command = train) -> str:
    """What a command says when it refuses; those that write their results write none."""
    result = invoke(command, *arguments)
    assert isinstance(result.exception, ValueError), result.output
    assert command is train or not result.stdout
    return str(result.exception)


def stopped_with_ctrl_c(program: str, *arguments: object) -> str:
    """What a program says behind its first line of `ibm1` when it gets the signal, which ends it at once."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("ibm1 1/")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 1
    assert "Traceback" not in said
    return said


def opened(
    *checkpoints: Path, source: str | None = "de", target: str | None = "En", precision: str = "auto"
) -> AbstractContextManager[CheckpointSystem]:
    """A system on the CPU."""
    files, languages = map(str, checkpoints), {"source_language": source, "target_language": target}
    return open_checkpoint_system(*files, **languages, beam_size=3, device="cpu", precision=precision)
