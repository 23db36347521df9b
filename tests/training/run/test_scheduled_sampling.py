"""The probability of the reference's token falls as Bengio et al. (2015) say."""

import math
from typing import Any, Literal

import pytest

from dragoman_training.run.scheduled_sampling import ScheduledSamplingConfig, teacher_forcing


def test_it_is_off_by_default() -> None:
    config = ScheduledSamplingConfig()
    assert teacher_forcing(config, 1) == teacher_forcing(config, 10**6) == 1.0


def test_without_a_decay_it_stays_where_it_begins() -> None:
    config = ScheduledSamplingConfig(teacher_forcing=0.8, token="sampled")
    assert teacher_forcing(config, 1) == teacher_forcing(config, 10**6) == 0.8


@pytest.mark.parametrize(
    ("decay", "after"),
    [
        ("linear", lambda done: 1 - done / 100),
        ("exponential", lambda done: math.exp(-1 / 100) ** done),
        ("inverse_sigmoid", lambda done: 100 / (100 + math.exp(done / 100))),
    ],
)
def test_it_falls_by_the_papers_formula_down_to_the_least(
    decay: Literal["linear", "exponential", "inverse_sigmoid"], after: object
) -> None:
    config = ScheduledSamplingConfig(decay=decay, pace=100, least=0.25)
    for step in (1, 2, 30, 70, 400, 600, 10**7):
        exact = after(min(step - 1, 70_000))  # type: ignore[operator]
        assert teacher_forcing(config, step) == pytest.approx(max(0.25, exact))


def test_it_begins_where_the_recipe_says() -> None:
    config = ScheduledSamplingConfig(teacher_forcing=0.8, decay="linear", pace=10)
    assert teacher_forcing(config, 1) == pytest.approx(0.8)
    assert teacher_forcing(config, 6) == pytest.approx(0.4)
    assert teacher_forcing(config, 11) == 0


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"pace": 50.0}, r"scheduled_sampling\.pace is 50\.0, but changes nothing: .*decay is \"none\""),
        ({"teacher_forcing": 0.5, "least": 0.2}, r"scheduled_sampling\.least is 0\.2, but changes nothing"),
        ({"token": "sampled"}, r"scheduled_sampling\.token is sampled, but changes nothing: .*read always"),
    ],
)
def test_a_setting_that_changes_nothing_is_refused(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        ScheduledSamplingConfig(**settings)


def test_the_least_cannot_be_above_the_beginning() -> None:
    with pytest.raises(ValueError, match=r"least is 0\.6, but must be at most teacher_forcing, 0\.5"):
        ScheduledSamplingConfig(teacher_forcing=0.5, least=0.6)
