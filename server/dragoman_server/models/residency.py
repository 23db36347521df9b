"""Which of the models that are loaded makes room for another. Pure: is told the time, in seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

STAY_LOADS = 4
"""A model that is always in use stays for so many times as long as it took to load: of more models in use
than there is room for each has its turn, and loading them takes a fifth of the time at most."""

K = TypeVar("K")


@dataclass(kw_only=True)
class Residency:
    """The stay of a model that is loaded."""

    since: float
    """When it was there."""
    load_seconds: float
    """How long it took to load."""
    used_at: float
    """When somebody last came or left."""
    num_inside: int = 0
    """Its users."""
    is_leaving: bool = False
    """Whether it takes nobody any more, and goes once nobody uses it."""

    @property
    def until(self) -> float:
        """From when on it may be told to leave although it is in use."""
        return self.since + STAY_LOADS * self.load_seconds


def choose_leaving(residencies: Mapping[K, Residency], now: float) -> K | None:
    """The least recently used of those that nobody uses, else the longest there of those that may be told to.

    None where there is neither, at the moment. Those that are leaving are passed over.
    """
    staying = {key: residency for key, residency in residencies.items() if not residency.is_leaving}
    idle = [key for key, residency in staying.items() if not residency.num_inside]
    if idle:
        return min(idle, key=lambda key: staying[key].used_at)
    overdue = [key for key, residency in staying.items() if residency.until <= now]
    return min(overdue, key=lambda key: staying[key].since, default=None)


def next_choice(residencies: Mapping[K, Residency]) -> float | None:
    """When one that is in use may first be told to leave; None where there is none but leaving ones."""
    return min(
        (residency.until for residency in residencies.values() if not residency.is_leaving), default=None
    )
