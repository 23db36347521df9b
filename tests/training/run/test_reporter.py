"""Validations, which of them is the best, and what a training says of itself."""

import math
import time
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tests.training.toy_pairs import SOURCES, TARGETS, curves, toy_model, toy_tokenizer

from dragoman_training import time_left
from dragoman_training.checkpoint import load_checkpoint
from dragoman_training.data.batching import Pairs
from dragoman_training.data.corpus import Corpus, spread
from dragoman_training.data.files import read_lines
from dragoman_training.models import LuongConfig
from dragoman_training.processes import Processes
from dragoman_training.run import reporter as reporting
from dragoman_training.run.reporter import Reporter, StepReport
from dragoman_training.run.validation import Progress, Validation, perplexity


def test_perplexity_is_that_of_the_mean_token_whatever_the_batches(
    toy_folder: Path, toy_checkpoint: Path
) -> None:
    checkpoint = load_checkpoint(toy_checkpoint)
    tokenizer = checkpoint.source_tokenizer
    corpus = Corpus(*(list(read_lines(toy_folder / f"test.{side}"))[:9] for side in ("de", "en")))
    pairs = Pairs(corpus, tokenizer, tokenizer, max_tokens=None)
    loss, num_tokens = 0.0, 0
    for number in range(9):
        batch = pairs.batch([number])
        with torch.inference_mode():
            features = checkpoint.model(batch.source_ST, batch.source_length_S, batch.target_input_SU)
            output = checkpoint.model.output
            log_probability = (features @ output.embedding.weight.T + output.bias).log_softmax(dim=-1)
        loss -= float(log_probability[0].gather(1, batch.target_output_SU.T).sum())
        num_tokens += batch.target_output_SU.numel()
    expected = math.exp(loss / num_tokens)
    for batch_tokens in (1, 40, 4000):
        found = perplexity(checkpoint.model, pairs, batch_tokens=batch_tokens)
        assert found == pytest.approx(expected, rel=1e-4)


def test_validation_pairs_are_spread_evenly() -> None:
    corpus = Corpus([str(n) for n in range(10)], [str(-n) for n in range(10)])
    assert spread(corpus, 3).sources == ["0", "3", "6"]
    assert spread(corpus, 3).targets == ["0", "-3", "-6"]
    for number in (0, 10, 99):
        assert spread(corpus, number) is corpus


def better(*results: tuple[float, float]) -> list[bool]:
    """Whether each of these validations, of BLEU and perplexity, was the best when it came."""
    progress = Progress()
    return [
        progress.take_in(Validation(bleu=bleu, perplexity=perplexity, sample=None), "bleu")
        for bleu, perplexity in results
    ]


def test_more_bleu_is_better_and_of_equal_bleu_or_noise_the_lower_perplexity() -> None:
    assert better((10.0, 20.0), (12.0, 30.0), (11.0, 5.0)) == [True, True, False]
    assert better((10.0, 20.0), (10.0, 19.0), (10.0, 19.5)) == [True, True, False]
    # A model that has learnt little has a BLEU of 0 or by chance a bit more, while its perplexity falls.
    assert better((0.3, 555.0), (0.0, 399.0), (0.0, 305.0), (0.4, 310.0)) == [True, True, True, False]
    assert better((0.9, 300.0), (1.5, 350.0), (0.5, 200.0)) == [True, True, False]


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
    assert curves(tmp_path)["valid/bleu"] == [(step, 10.0) for step in (50, 100, 200)]


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
    said = " ".join(capsys.readouterr().out.split())
    assert "24 pairs (1 too long, 3 with an empty side); 3 batches an epoch; on cpu" in said


def test_a_line_now_and_then_says_how_fast_it_is_and_how_long_it_will_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twelve of 132 steps of 3,000 tokens, each of two seconds."""
    clock = count(0, 2)
    monkeypatch.setattr(reporting, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    monkeypatch.setattr(reporting, "LOG_EVERY_SECONDS", 24)
    report = StepReport(
        step=0,
        total_steps=132,
        epoch=1,
        loss=2.5,
        num_tokens=3000,
        gradient_norm=1.0,
        learning_rate=1e-3,
        teacher_forcing=1.0,
    )
    with Reporter(tmp_path) as reporter:
        for step in range(1, 13):
            reporter.step(replace(report, step=step))
    assert capsys.readouterr().out == "epoch 2, step 12 of 132: loss 2.500, 1,500 tokens/s, 4 min left\n"


def test_the_time_left_follows_from_the_rate_since_the_first_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two minutes of learning come first; then a thousand pairs take a second."""
    clock, lines = [0.0], list[str]()
    monkeypatch.setattr(time_left.time, "monotonic", lambda: clock[0])
    advance = time_left.progress_lines(461_000, "Linked", "pairs", lines.append)
    clock[0] = 120.0
    for done in range(10_000, 461_001, 10_000):
        advance(done)
        clock[0] += 10
    assert lines[0] == "Linked 10,000 of 461,000 pairs."
    assert lines[1] == "Linked 20,000 of 461,000 pairs; 7.3 min left."
    assert lines[-1] == "Linked 460,000 of 461,000 pairs; 0.0 min left."
    # Lines come every few seconds at most.
    lines.clear()
    advance = time_left.progress_lines(100, "Translated", "lines", lines.append)
    for done in range(1, 101):
        advance(done)
        clock[0] += 1
    assert len(lines) == 9
