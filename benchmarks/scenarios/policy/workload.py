"""The arrivals: callers at random moments, jobs that always have more, and a queue that is never empty."""

import csv
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_LENGTHS = Path(__file__).with_name("lengths.tsv")


@dataclass(frozen=True, kw_only=True)
class Length:
    """How long a sentence is."""

    source_tokens: int
    steps: int
    """Decoder steps until it has ended."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What comes to an engine."""

    name: str
    """What it is called in the table."""
    seconds: float
    """Virtual time that it lasts; those who came in the first tenth are not counted."""
    callers_per_second: float = 0.0
    """Interactive sentences, at moments that know nothing of each other (a Poisson process)."""
    waiting_bulk: int = 0
    """Bulk sentences that a job keeps in the engine: one that ends is followed by another."""
    waiting_callers: int = 0
    """Interactive sentences that always wait: a call of `sentences_a_call` comes as soon as fewer do."""
    sentences_a_call: int = 1
    """Sentences that come at once and are answered together."""
    clients: int = 0
    """Callers each of whom calls again as soon as it is answered."""
    beam_sizes: tuple[int, ...] = (5,)
    """Beam sizes of callers, in turns; jobs have the last."""
    offline: int = 0
    """Interactive sentences that are all there at the beginning; the workload ends with the last of them."""

    def arrivals(self, rng: random.Random) -> Iterator[float]:
        """When callers come."""
        now = 0.0
        while (
            self.callers_per_second and (now := now + rng.expovariate(self.callers_per_second)) < self.seconds
        ):
            yield now


def read_lengths() -> list[Length]:
    """Those of Multi30k's 1,000 test sentences in the pieces of `models/de-en/1`."""
    with _LENGTHS.open(encoding="utf-8") as file:
        return [
            Length(source_tokens=int(row["source_tokens"]), steps=int(row["steps"]))
            for row in csv.DictReader(file, delimiter="\t")
            for _ in range(int(row["sentences"]))
        ]


# One engine of the costs above does so many sentences of callers in a second.
_CAPACITY = 313.0


def workloads() -> list[Workload]:
    """Callers alone and beside a job, at shares of what an engine can do; and crowds."""

    def callers(share: float, *, bulk: int = 0) -> Workload:
        beside = " beside a job" if bulk else ""
        return Workload(
            name=f"callers, {share:.0%} of capacity{beside}",
            seconds=40.0 if bulk else 60.0,
            callers_per_second=share * _CAPACITY,
            waiting_bulk=bulk,
        )

    return [
        *(callers(share) for share in (0.25, 0.5, 0.75)),
        *(callers(share, bulk=512) for share in (0.25, 0.5, 0.75)),
        Workload(name="rare callers beside a job", seconds=300.0, callers_per_second=0.15, waiting_bulk=512),
        Workload(name="a job alone", seconds=20.0, waiting_bulk=512),
        Workload(name="offline", seconds=0.0, offline=1000),
        Workload(
            name="a crowd of calls of 40 sentences", seconds=30.0, waiting_callers=1500, sentences_a_call=40
        ),
        Workload(
            name="8 clients of 10 sentences, one call after the other",
            seconds=30.0,
            clients=8,
            sentences_a_call=10,
        ),
        Workload(name="16 clients of a sentence, one call after the other", seconds=30.0, clients=16),
        Workload(
            name="two beam sizes, 50% beside a job",
            seconds=40.0,
            callers_per_second=0.5 * _CAPACITY,
            waiting_bulk=512,
            beam_sizes=(1, 5),
        ),
    ]
