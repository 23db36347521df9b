"""What a recipe asks for is what the steps do: each setting is seen in the update, not in the code."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.training.toy_pairs import DATA, curves, toy_corpus, toy_model, trainer_over
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import register_optimizer_step_pre_hook

from dragoman_training.checkpoint import Checkpoint, load_checkpoint
from dragoman_training.data.batching import Batch, Pairs
from dragoman_training.decoding.translator import Translator
from dragoman_training.models import (
    LuongConfig,
    ModelConfig,
    Seq2Seq,
    TransformerConfig,
    VocabularyShape,
    build_model,
)
from dragoman_training.recipe.data import SubwordSamplingConfig
from dragoman_training.recipe.settings import (
    DecodingConfig,
    GuidedAlignmentConfig,
    Recipe,
    ScheduledSamplingConfig,
    TrainingConfig,
)
from dragoman_training.run import reporter
from dragoman_training.run.objective import Objective, teacher_forcing
from dragoman_training.run.optimizer import MovingAverage, build_optimizer, learning_rate
from dragoman_training.run.reporter import Reporter
from dragoman_training.run.trainer import Trainer
from dragoman_training.run.validation import perplexity


@pytest.mark.parametrize(
    ("decay", "late", "end"),
    [
        ("inverse_sqrt", 0.5, 0.1**0.5 * 1.0),
        ("linear", 2 / 3, 0.0),
        ("cosine", 0.75, 0.0),
        ("constant", 1.0, 1.0),
    ],
)
def test_the_rate_rises_linearly_and_falls_as_the_recipe_says(decay: str, late: float, end: float) -> None:
    config = TrainingConfig(learning_rate=1.0, warmup_steps=100, decay=decay)  # type: ignore[arg-type]
    assert learning_rate(config, 1, 1000) == pytest.approx(0.01)
    assert learning_rate(config, 50, 1000) == pytest.approx(0.5)
    assert learning_rate(config, 100, 1000) == pytest.approx(1.0)
    assert learning_rate(config, 400, 1000) == pytest.approx(late)
    assert learning_rate(config, 1000, 1000) == pytest.approx(end)


SHAPE = VocabularyShape(source_size=9, target_size=9, shared=True, bos=2, never_produced=(0, 1, 2))
TINY = LuongConfig(embedding_size=4, encoder_units=4, decoder_units=4)


def test_the_average_follows_the_parameters_without_sharing_them() -> None:
    model = build_model(TINY, SHAPE)
    average = MovingAverage(model, decay=0.9)
    before = model.bridge.bias.detach().clone()  # type: ignore[union-attr]
    with torch.no_grad():
        model.bridge.bias += 1  # type: ignore[union-attr, operator]
    average.update(model)
    # One update: the decay is held back to (1 + 1) / (10 + 1).
    torch.testing.assert_close(average.model.bridge.bias, before + 9 / 11)  # type: ignore[arg-type]
    for _ in range(300):
        average.update(model)
    torch.testing.assert_close(average.model.bridge.bias, model.bridge.bias)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "config",
    [TINY, TransformerConfig(width=4, heads=2, feed_forward=4, positions="learned", max_positions=5)],
    ids=lambda config: config.family,
)
def test_only_weight_matrices_decay(config: ModelConfig) -> None:
    model = build_model(config, SHAPE)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = build_optimizer(TrainingConfig(optimizer="adamw", weight_decay=0.5), model)
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        decays = parameter.ndim == 2 and "embedding" not in name and "positions" not in name
        torch.testing.assert_close(parameter.detach(), before[name] * (0.95 if decays else 1.0))
    assert sum(parameter.ndim == 2 for parameter in model.parameters()) > 5


MODEL = LuongConfig(
    embedding_size=12, encoder_layers=1, encoder_units=10, decoder_layers=1, decoder_units=14, dropout=0
)

TRAINING = TrainingConfig(
    batch_tokens=10_000,
    learning_rate=1e-2,
    warmup_steps=3,
    decay="linear",
    max_epochs=8,
    ema_decay=0,
    precision="fp32",
    validate_every_epochs=1000,
)
"""One batch holds all pairs, so that an epoch is a step; validated is after the last one."""

DECODING = DecodingConfig(beam_size=1, max_output_tokens=2)


class Watched:
    """What steps did, seen from below."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.gradients: list[list[torch.Tensor]] = []
        """Of each step, what the optimizer was given."""
        self.batches: list[Batch] = []

    def norm(self, step: int) -> float:
        """That of all gradients of a step."""
        return torch.stack([gradient.norm() for gradient in self.gradients[step]]).norm().item()

    def see_update(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        (group,) = optimizer.param_groups
        self.rates.append(group["lr"])
        self.gradients.append([parameter.grad.clone() for parameter in group["params"]])

    def see_module(self, module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if isinstance(module, Objective):
            self.batches.append(inputs[0])


@pytest.fixture
def watched() -> Iterator[Watched]:
    watched = Watched()
    hooks = [
        register_optimizer_step_pre_hook(watched.see_update),
        register_module_forward_hook(watched.see_module),
    ]
    yield watched
    for hook in hooks:
        hook.remove()


def train(folder: Path, tokenizer: Tokenizer, *, model: Seq2Seq | None = None, **settings: Any) -> Trainer:
    """A run on the toy pairs from `model` on, or from a random one. `settings` are tables of the recipe."""
    tables = {"data": DATA, "model": MODEL, "training": TRAINING, "decoding": DECODING} | settings
    recipe = Recipe(name="toy", **tables)
    with Reporter(folder) as reporting:
        trainer = trainer_over(recipe, tokenizer, toy_corpus(), folder, reporting, "cpu")
        if model:
            tokenizers = {"source_tokenizer": tokenizer, "target_tokenizer": tokenizer}
            trainer.begin_with(Checkpoint(recipe=recipe, model=model, progress={}, **tokenizers))
        trainer.run()
    return trainer


def test_gradients_are_cut_to_the_norm(tmp_path: Path, tokenizer: Tokenizer, watched: Watched) -> None:
    train(tmp_path, tokenizer, training=replace(TRAINING, clip_norm=0.05))
    assert len(watched.gradients) == 8
    assert [watched.norm(step) for step in range(8)] == pytest.approx([0.05] * 8, rel=1e-3)


def test_each_step_has_the_schedules_rate(tmp_path: Path, tokenizer: Tokenizer, watched: Watched) -> None:
    train(tmp_path, tokenizer)
    assert watched.rates == [learning_rate(TRAINING, step, 8) for step in range(1, 9)]
    assert len(set(watched.rates)) > 5


def test_the_rate_falls_until_the_end_however_many_batches_an_epoch_has(
    tmp_path: Path, tokenizer: Tokenizer, watched: Watched
) -> None:
    sampling = SubwordSamplingConfig(alpha=0.3, source=True, target=True)
    training = replace(TRAINING, batch_tokens=150, max_epochs=6)
    trainer = train(tmp_path, tokenizer, training=training, subword_sampling=sampling)
    lengths = [len(trainer._plan(epoch)) for epoch in range(6)]
    assert len(watched.rates) == sum(lengths) != 6 * lengths[0]
    num_steps = len(watched.rates)
    last_epoch = range(num_steps - lengths[-1] + 1, num_steps + 1)
    assert watched.rates[-lengths[-1] :] == [learning_rate(training, step, num_steps) for step in last_epoch]
    assert min(watched.rates[:-1]) > 0


def test_attention_is_guided_only_where_the_recipe_says_so(
    tmp_path: Path, tokenizer: Tokenizer, watched: Watched
) -> None:
    once = replace(TRAINING, max_epochs=1)
    train(tmp_path / "guided", tokenizer, training=once, guided_alignment=GuidedAlignmentConfig(weight=0.5))
    train(tmp_path / "not", tokenizer, training=once)
    guided, unguided = (batch.guide_SUT for batch in watched.batches)
    assert guided is not None
    assert float(guided.sum()) > 24
    assert unguided is None
    assert not all(torch.equal(one, other) for one, other in zip(*watched.gradients, strict=True))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_what_is_minimised_is_the_smoothed_loss_of_a_token(
    tmp_path: Path, tokenizer: Tokenizer, watched: Watched, smoothing: float
) -> None:
    torch.manual_seed(2)
    model = toy_model(MODEL, tokenizer)
    batch = Pairs(toy_corpus(), tokenizer, tokenizer, max_tokens=None).batch(range(24))
    features_SUD = model(batch.source_ST, batch.source_length_S, batch.target_input_SU)
    logits_NV = features_SUD[batch.counted] @ model.output.embedding.weight.T + model.output.bias
    target_N = batch.target_output_SU[batch.counted]
    nn.functional.cross_entropy(logits_NV, target_N, label_smoothing=smoothing).backward()
    expected = [parameter.grad for parameter in model.parameters()]
    model.zero_grad(set_to_none=True)

    training = replace(TRAINING, label_smoothing=smoothing, clip_norm=1e6)
    train(tmp_path, tokenizer, model=model, training=training)
    torch.testing.assert_close(watched.gradients[0], expected, rtol=1e-3, atol=1e-6)


def test_every_epoch_draws_its_segmentations(tmp_path: Path, tokenizer: Tokenizer, watched: Watched) -> None:
    training = replace(TRAINING, max_epochs=3)

    def epochs(sampling: SubwordSamplingConfig) -> list[tuple[list[list[int]], list[list[int]]]]:
        """The sources and targets of each, in order."""
        watched.batches.clear()
        train(tmp_path / str(sampling.source), tokenizer, training=training, subword_sampling=sampling)
        return [
            tuple(  # type: ignore[misc]
                sorted([id_ for id_ in row if id_ > 3] for row in side.tolist())
                for side in (batch.source_ST, batch.target_output_SU)
            )
            for batch in watched.batches
        ]

    first, second, third = epochs(SubwordSamplingConfig())
    assert first == second == third
    drawn = epochs(SubwordSamplingConfig(source=True, target=True))
    for side in (0, 1):
        first_side, second_side, third_side = (epoch[side] for epoch in drawn)
        assert first_side != second_side != third_side != first_side


def test_validation_searches_as_the_recipe_says(tmp_path: Path, tokenizer: Tokenizer) -> None:
    decoding = DecodingConfig(beam_size=6, length_penalty=3.0, max_output_tokens=40)
    training = replace(TRAINING, max_epochs=60)
    trainer = train(tmp_path, tokenizer, training=training, decoding=decoding)
    (validation,) = trainer.progress.validations
    model, corpus = load_checkpoint(trainer.best_path).model, toy_corpus()

    def bleu(decoding: DecodingConfig) -> float:
        found = Translator(model, tokenizer, tokenizer, decoding).translate(corpus.sources)
        return sacrebleu.corpus_bleu(found, [corpus.targets]).score

    assert validation["bleu"] == pytest.approx(bleu(decoding))
    for other in (replace(decoding, beam_size=1), replace(decoding, length_penalty=0.0)):
        assert abs(bleu(other) - validation["bleu"]) > 0.1


def test_the_board_has_a_curve_of_each_figure(
    tmp_path: Path, tokenizer: Tokenizer, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter, "BOARD_EVERY_STEPS", 2)
    model = toy_model(MODEL, tokenizer)
    # So slow that the model stays what it was.
    training = replace(TRAINING, learning_rate=1e-12, clip_norm=1e6)
    sampling = ScheduledSamplingConfig(decay="linear", pace=1000)
    train(tmp_path, tokenizer, model=model, training=training, scheduled_sampling=sampling)
    found = curves(tmp_path)
    assert found.keys() >= {"valid/perplexity", "valid/bleu"}
    steps = [2, 4, 6, 8]
    loss = math.log(perplexity(model, Pairs(toy_corpus(), tokenizer, tokenizer, max_tokens=None)))
    for name, first in (("train/loss", loss), ("train/gradient_norm", watched.norm(1))):
        assert [step for step, _ in found[name]] == steps
        assert found[name][0][1] == pytest.approx(first, rel=0.02)
    for name, expected in (
        ("train/learning_rate", [watched.rates[step - 1] for step in steps]),
        ("train/teacher_forcing", [teacher_forcing(sampling, step) for step in steps]),
    ):
        assert found[name] == [(step, pytest.approx(one)) for step, one in zip(steps, expected, strict=True)]
    assert [step for step, speed in found["train/tokens_per_second"] if speed > 0] == steps
