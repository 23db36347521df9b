"""Percentiles as the nearest rank: always a latency that somebody had."""

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], percent: float) -> float:
    """The least of the values that so many percent of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
