"""Shares of another model's BLEU."""

import numpy as np
import pytest

from dragoman_training.classics.study.scores import Scorer, interval
from dragoman_training.classics.study.shares import Share, change_between, share_of

REFERENCES = [f"a man with {number} old dogs sees the {number + 1} birds in a tree" for number in range(40)]
GOOD = [each.replace("old", "young") if place % 3 else each for place, each in enumerate(REFERENCES)]
BAD = [each.replace("man with", "dog and") if place % 2 else each for place, each in enumerate(GOOD)]


def scorer(translations: list[str]) -> Scorer:
    return Scorer(translations, REFERENCES, lowercase=False, target_language="en")


def test_a_share_is_of_the_same_sentences_and_its_interval_of_the_same_draws() -> None:
    good, bad, numbers = scorer(GOOD), scorer(BAD), range(5, 35)
    share = share_of(bad, good, numbers)
    assert share is not None
    assert share.value == bad.score(numbers).bleu / good.score(numbers).bleu < 1
    assert np.array_equal(share.resampled, bad.resampled(numbers) / good.resampled(numbers))
    low, high = interval(share.resampled)
    assert low < share.value < high
    assert share.half_width == (high - low) / 2 > 0.01
    # A model has all of its own BLEU, whichever sentences are drawn.
    own = share_of(good, scorer(GOOD), numbers)
    assert own is not None
    assert (own.value, own.half_width) == (1, 0)


def test_of_a_model_that_says_nothing_there_is_no_share() -> None:
    silent = scorer([""] * 40)
    assert share_of(scorer(GOOD), silent, range(40)) is None
    nothing = share_of(silent, scorer(GOOD), range(40))
    assert nothing is not None
    assert nothing.value == 0
    # Says something once only: some draws miss it.
    assert share_of(scorer(GOOD), scorer([GOOD[0], *[""] * 39]), range(40)) is None


@pytest.mark.parametrize(
    ("last", "falls", "rises"),
    [(0.4, True, False), (0.55, False, False), (0.65, False, False), (0.8, False, True)],
)
def test_a_share_changes_where_the_interval_of_the_difference_leaves_none_out(
    last: float, falls: bool, rises: bool
) -> None:
    generator = np.random.default_rng(1)
    first, second = (
        Share(value=value, resampled=generator.normal(value, 0.05, 1000)) for value in (0.6, last)
    )
    change = change_between(first, second)
    assert change.difference == last - 0.6
    assert (change.falls, change.rises) == (falls, rises)
    # The root of two variances of 0.05 squared, 1.96 times to either side.
    assert (change.high - change.low) / 2 == pytest.approx(1.96 * 0.05 * 2**0.5, rel=0.1)
    assert change.low < change.difference < change.high
