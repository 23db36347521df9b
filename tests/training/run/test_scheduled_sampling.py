"""The probability of the reference's token falls as Bengio et al. (2015) say."""

import math
from typing import Any, Literal

import pytest

from dragoman_training.recipe.settings import ScheduledSamplingConfig
from dragoman_training.run.objective import teacher_forcing


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
