"""How much of another model's BLEU a model has in parts of a test set, and whether one share is another.

Within a part both models are scored on the same resampled sentences (paired bootstrap, Koehn 2004).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman_training.classics.study.scores import Scorer, interval


@dataclass(frozen=True, kw_only=True, eq=False)
class Share:
    """A model's BLEU of some sentences, divided by another's."""

    value: float
    resampled: NDArray[np.float64]
    """The same of each draw."""

    @property
    def half_width(self) -> float:
        """Half the width of its 95% interval."""
        low, high = interval(self.resampled)
        return (high - low) / 2


@dataclass(frozen=True, kw_only=True)
class Change:
    """From one share to another."""

    difference: float
    low: float
    """Where its 95% interval begins."""
    high: float
    """Where it ends."""

    @property
    def falls(self) -> bool:
        """Whether the second share is lower, and not by chance."""
        return self.high < 0

    @property
    def rises(self) -> bool:
        """Whether the second share is higher, and not by chance."""
        return self.low > 0


def share_of(one: Scorer, other: Scorer, numbers: Sequence[int]) -> Share | None:
    """What `one` has of the BLEU of `other`; None where that is 0, if only in some draw."""
    reference = other.resampled(numbers)
    if not reference.all():
        return None
    return Share(
        value=one.score(numbers).bleu / other.score(numbers).bleu,
        resampled=one.resampled(numbers) / reference,
    )


def change_between(first: Share, last: Share) -> Change:
    """How the share changes between two parts, whose draws do not depend on each other."""
    low, high = interval(last.resampled - first.resampled)
    return Change(difference=last.value - first.value, low=low, high=high)
