"""Our trainer at the same task, in a process of its own."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import click
import torch
from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from benchmarks.train.shape import Material, Shape, Timing
from dragoman_training.data.batching import Pairs
from dragoman_training.data.corpus import read_corpus
from dragoman_training.data.vocabulary import train_tokenizers
from dragoman_training.models import LuongConfig, Seq2Seq
from dragoman_training.processes import Processes
from dragoman_training.recipe.settings import DataConfig, Recipe, TrainingConfig, VocabularyConfig
from dragoman_training.run.reporter import Reporter, StepReport
from dragoman_training.run.stop_request import StopRequest
from dragoman_training.run.trainer import Trainer


class StepClock(Reporter):
    """Times steps between two numbers of them, and asks for a stop after the second."""

    def __init__(self, folder: Path, stop: StopRequest, *, warmup_steps: int, steps: int) -> None:
        super().__init__(folder)
        self._stop = stop
        self._first, self._last = warmup_steps, warmup_steps + steps
        self.tokens = 0
        self.parameters = 0
        self.seconds = 0.0

    def describe(self, model: Seq2Seq, pairs: Pairs, batches_per_epoch: int, processes: Processes) -> None:
        self.parameters = sum(parameter.numel() for parameter in model.parameters())

    def step(self, report: StepReport) -> None:
        if report.step == self._first:
            self._began = time.perf_counter()
        if report.step > self._first:
            self.tokens += report.num_tokens
        if report.step == self._last:
            self.seconds = time.perf_counter() - self._began
            self._stop.requested = True


def data_config(material: Material) -> DataConfig:
    """The material's files, as a recipe names them."""
    return DataConfig(
        source_language=material.train_source.suffix[1:],
        target_language=material.train_target.suffix[1:],
        train_source=(str(material.train_source.absolute()),),
        train_target=(str(material.train_target.absolute()),),
        valid_source=(str(material.valid_source.absolute()),),
        valid_target=(str(material.valid_target.absolute()),),
    )


def write_tokenizer(material: Material, size: int) -> None:
    """Trains the vocabulary that both toolkits use."""
    corpus = read_corpus(data_config(material), "train", Path())
    tokenizer, _ = train_tokenizers(corpus, VocabularyConfig(size=size))
    material.tokenizer.write_bytes(tokenizer.model)


def measure(shape: Shape, material: Material) -> Timing:
    """One run in a new process. Raises ClickException where it fails."""
    arguments = json.dumps(
        {
            "shape": vars(shape),
            "material": {name: str(value) for name, value in vars(material).items()},
        }
    )
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.train.ours", arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": str(material.threads)},
    )
    if done.returncode:
        raise click.ClickException(f"our own trainer failed:\n{done.stderr[-3000:]}")
    return Timing(**json.loads(done.stdout.splitlines()[-1]))


def run_here(shape: Shape, material: Material) -> Timing:
    """Trains in this process; the steps after warm-up are timed."""
    torch.set_num_threads(material.threads)
    recipe = Recipe(
        name="benchmark",
        data=data_config(material),
        model=LuongConfig(
            embedding_size=shape.embedding_size,
            encoder_layers=shape.encoder_layers,
            encoder_units=shape.encoder_units,
            decoder_layers=shape.decoder_layers,
            decoder_units=shape.decoder_units,
            dropout=shape.dropout,
        ),
        training=TrainingConfig(
            batch_tokens=shape.batch_tokens,
            label_smoothing=shape.label_smoothing,
            learning_rate=5e-4,
            precision="fp32",
        ),
    )
    tokenizer = Tokenizer.load(material.tokenizer)
    stop = StopRequest()
    folder = material.folder / "ours"
    clock = StepClock(folder, stop, warmup_steps=material.warmup_steps, steps=material.steps)
    trainer = Trainer(
        recipe,
        (tokenizer, tokenizer),
        read_corpus(recipe.data, "train", Path()),
        read_corpus(recipe.data, "valid", Path()),
        folder=folder,
        processes=Processes(torch.device("cpu")),
        reporter=clock,
        stop=stop,
    )
    with contextlib.suppress(KeyboardInterrupt):
        trainer.run()
    return Timing(tokens_per_second=clock.tokens / clock.seconds, parameters=clock.parameters)


def _main() -> None:
    given = json.loads(sys.argv[1])
    files = given["material"]
    material = Material(
        folder=Path(files["folder"]),
        train_source=Path(files["train_source"]),
        train_target=Path(files["train_target"]),
        valid_source=Path(files["valid_source"]),
        valid_target=Path(files["valid_target"]),
        tokenizer=Path(files["tokenizer"]),
        warmup_steps=int(files["warmup_steps"]),
        steps=int(files["steps"]),
        threads=int(files["threads"]),
    )
    timing = run_here(Shape(**given["shape"]), material)
    print(json.dumps(vars(timing)))


if __name__ == "__main__":
    _main()
