"""The learning rate over time, and the moving average."""

import pytest
import torch

from dragoman_training.models import LuongConfig, ModelConfig, TransformerConfig, VocabularyShape, build_model
from dragoman_training.recipe.settings import TrainingConfig
from dragoman_training.run.optimizer import MovingAverage, build_optimizer, learning_rate


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


def test_the_average_follows_the_parameters_without_sharing_them() -> None:
    shape = VocabularyShape(source_size=9, target_size=9, shared=True, bos=2, never_produced=(0, 1, 2))
    model = build_model(LuongConfig(embedding_size=4, encoder_units=4, decoder_units=4), shape)
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
    [
        LuongConfig(embedding_size=4, encoder_units=4, decoder_units=4),
        TransformerConfig(width=4, heads=2, feed_forward=4, positions="learned", max_positions=5),
    ],
    ids=lambda config: config.family,
)
def test_only_weight_matrices_decay(config: ModelConfig) -> None:
    shape = VocabularyShape(source_size=9, target_size=9, shared=True, bos=2, never_produced=(0, 1, 2))
    model = build_model(config, shape)
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
