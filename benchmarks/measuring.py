"""Repeats that are fair on a machine with other work: A B A B and not A A B B. Does not know what it runs."""

import math
import statistics
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich.console import Console

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class MeasurementError(Exception):
    """Something cannot be measured here; the message says what is missing, and how to have it."""


@dataclass(frozen=True)
class Summary:
    """The repeats of one figure."""

    median: float
    spread: float
    """Highest less lowest, as a share of the median."""
    values: tuple[float, ...]
    """Each repeat's, in their order."""


def summarize(values: Sequence[float]) -> Summary:
    """Median and spread of at least one value."""
    median = statistics.median(values)
    spread = (max(values) - min(values)) / abs(median) if median else 0.0
    return Summary(median=median, spread=spread, values=tuple(values))


def ratio(values: Sequence[float], others: Sequence[float]) -> Summary:
    """Values over others, repeat by repeat: what disturbed the machine for a while disturbed both."""
    return summarize([value / other for value, other in zip(values, others, strict=True)])


def say(text: str) -> None:
    """Tells on stderr what happens, so that a long run can be watched."""
    Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)


def in_turns(
    cases: Mapping[K, Callable[[], T]], repeats: int, show: Callable[[T], str], *, until: float = math.inf
) -> dict[K, list[T]]:
    """What each case returned at each repeat, told by `show`. All cases are run before any is run again.

    None but the first repeat begins after the moment `until` of `time.monotonic`.
    """
    results: dict[K, list[T]] = {name: [] for name in cases}
    total, done, began = repeats * len(cases), 0, time.monotonic()
    for repeat in range(repeats):
        if repeat and time.monotonic() > until:
            break
        for name, run in cases.items():
            result = run()
            results[name].append(result)
            done += 1
            left = (time.monotonic() - began) / done * (total - done)
            say(f"[{done}/{total}, {left:.0f} s left] {name}: {show(result)}")
    return results
