"""What a training says of itself."""

import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tests.training.toy_pairs import SOURCES, TARGETS, toy_model, toy_tokenizer

from dragoman_training.data.batching import Pairs
from dragoman_training.data.corpus import Corpus
from dragoman_training.models import LuongConfig
from dragoman_training.processes import Processes
from dragoman_training.run import reporter as reporting
from dragoman_training.run.reporter import Reporter, StepReport
from dragoman_training.run.validation import Validation


def curve(folder: Path) -> list[int]:
    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return [event.step for event in events.Scalars("valid/bleu")]


def test_a_resumed_run_keeps_the_validation_it_was_saved_after(tmp_path: Path) -> None:
    def validated(reporter: Reporter, step: int) -> None:
        reporter.validation(step, Validation(perplexity=2.0, bleu=10.0, sample=None), better=True)

    with Reporter(tmp_path) as reporter:
        for step in (50, 100, 150):
            validated(reporter, step)
    # TensorBoard reads files in the order of their names, which have the second in them.
    time.sleep(1.0)
    # Of what came after the state that is gone on from, nothing is left.
    with Reporter(tmp_path, first_step=100) as reporter:
        validated(reporter, 200)
    assert curve(tmp_path) == [50, 100, 200]


def test_pairs_that_are_left_out_are_counted_by_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = toy_tokenizer()
    # What normalization leaves nothing of is an empty side too.
    sources, targets = [*SOURCES, "hund " * 99, "\u200b"], [*TARGETS, "dog " * 99, "a dog"]
    corpus = Corpus(sources, targets, num_one_sided=2)
    pairs = Pairs(corpus, tokenizer, tokenizer, max_tokens=50)
    with Reporter(tmp_path, first_step=0) as reporter:
        reporter.describe(toy_model(LuongConfig(), tokenizer), pairs, 3, Processes(torch.device("cpu")))
    assert "24 pairs (1 too long, 3 with an empty side); 3 batches an epoch; on cpu" in " ".join(
        capsys.readouterr().out.split()
    )


def take_steps(reporter: Reporter) -> None:
    """Twelve of 132 steps of 3,000 tokens."""
    for step in range(1, 13):
        reporter.step(
            StepReport(
                step=step,
                total_steps=132,
                epoch=1,
                loss=2.5,
                num_tokens=3000,
                gradient_norm=1.0,
                learning_rate=1e-3,
                teacher_forcing=1.0,
            )
        )


@pytest.fixture
def _a_step_takes_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count(0, 2)
    monkeypatch.setattr(reporting, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))


@pytest.mark.usefixtures("_a_step_takes_two_seconds")
def test_a_line_now_and_then_says_how_fast_it_is_and_how_long_it_will_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reporting, "LOG_EVERY_SECONDS", 24)
    with Reporter(tmp_path) as reporter:
        take_steps(reporter)
    assert capsys.readouterr().out == "epoch 2, step 12 of 132: loss 2.500, 1,500 tokens/s, 4 min left\n"
