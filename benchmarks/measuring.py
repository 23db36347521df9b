"""Repeats that are fair on a machine with other work: A B A B and not A A B B. Does not know what it runs."""

import statistics
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


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


def interleave(
    cases: Mapping[K, Callable[[], T]], repeats: int, on_done: Callable[[int, K, T], None]
) -> dict[K, list[T]]:
    """What each case returned at each repeat. All of them are run before any is run again.

    `on_done` is told the number of the repeat, from 1 on, the case, and what it returned.
    """
    results: dict[K, list[T]] = {name: [] for name in cases}
    for repeat in range(1, repeats + 1):
        for name, run in cases.items():
            result = run()
            results[name].append(result)
            on_done(repeat, name, result)
    return results
