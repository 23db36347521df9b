"""The probability of the reference's token falls as Bengio et al. (2015) say."""

import math

import pytest

from dragoman_training.scheduled_sampling import ScheduledSamplingConfig, teacher_forcing


def test_it_is_off_by_default() -> None:
    config = ScheduledSamplingConfig()
    assert teacher_forcing(config, 1) == teacher_forcing(config, 10**6) == 1.0


@pytest.mark.parametrize(
    ("decay", "after"),
    [
        ("none", lambda done: 1.0),
        ("linear", lambda done: 1 - done / 100),
        ("exponential", lambda done: math.exp(-1 / 100) ** done),
        ("inverse_sigmoid", lambda done: 100 / (100 + math.exp(done / 100))),
    ],
)
def test_it_falls_by_the_papers_formula_down_to_the_least(decay: str, after: object) -> None:
    config = ScheduledSamplingConfig(decay=decay, pace=100, least=0.25)  # type: ignore[arg-type]
    for step in (1, 2, 30, 70, 400, 600, 10**7):
        exact = after(min(step - 1, 70_000))  # type: ignore[operator]
        assert teacher_forcing(config, step) == pytest.approx(max(0.25, exact))


def test_it_begins_where_the_recipe_says() -> None:
    config = ScheduledSamplingConfig(teacher_forcing=0.8, decay="linear", pace=10)
    assert teacher_forcing(config, 1) == pytest.approx(0.8)
    assert teacher_forcing(config, 6) == pytest.approx(0.4)
    assert teacher_forcing(config, 11) == 0


def test_the_least_cannot_be_above_the_beginning() -> None:
    with pytest.raises(ValueError, match=r"least is 0\.6, but must be at most teacher_forcing, 0\.5"):
        ScheduledSamplingConfig(teacher_forcing=0.5, least=0.6)
