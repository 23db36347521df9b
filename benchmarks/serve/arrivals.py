"""When which sentence arrives: drawn beforehand, so that a slow server cannot slow the load down."""

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Arrival:
    """A caller with one sentence."""

    at: float
    """Seconds after the start."""
    sentence: int
    """Which of the corpus it brings."""


def draw_arrivals(*, rate: float, seconds: float, num_sentences: int, seed: int) -> list[Arrival]:
    """A Poisson process of `rate` arrivals a second, each with any sentence of the corpus; at least one."""
    generator = random.Random(seed)
    arrivals: list[Arrival] = []
    at = generator.expovariate(rate)
    while at < seconds or not arrivals:
        arrivals.append(Arrival(at, generator.randrange(num_sentences)))
        at += generator.expovariate(rate)
    return arrivals
