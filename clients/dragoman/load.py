"""Load that waits for nobody: texts arrive at random moments, and each one's wait counts. Knows no gRPC."""

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass

WARMING_SHARE = 0.1
"""Share of a run at its beginning that is not counted: the server starts it empty."""
LEAD_SECONDS = 0.05


@dataclass(frozen=True)
class Arrival:
    """A caller with one text."""

    at: float
    """Seconds after the start."""
    text: int
    """Which of the texts it brings."""


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What became of the counted arrivals of a run."""

    latencies: Sequence[float]
    """Seconds from when a text was to arrive to its answer; of one that failed, at least its deadline."""
    num_failed: int
    seconds: float
    """The time from the first counted arrival to the end of the schedule, or to a last answer that is
    later."""
    late_seconds: float
    """Most that the generator itself was behind the schedule."""
    generator_cores: float
    """Processor time that the generator used, as a number of cores."""


def draw_arrivals(*, rate: float, seconds: float, num_texts: int, seed: int) -> list[Arrival]:
    """A Poisson process of `rate` arrivals a second, each with any of the texts; at least one."""
    generator = random.Random(seed)
    arrivals: list[Arrival] = []
    at = generator.expovariate(rate)
    while at < seconds or not arrivals:
        arrivals.append(Arrival(at, generator.randrange(num_texts)))
        at += generator.expovariate(rate)
    return arrivals


def percentile(values: Sequence[float], percent: float) -> float:
    """The least of the values that so many percent of them do not exceed: always one that somebody had."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


async def run_open_loop(
    call: Callable[[int], Awaitable[object]],
    arrivals: Sequence[Arrival],
    *,
    failures: type[Exception],
    deadline_seconds: float,
    p99_seconds: float = math.inf,
) -> Answered:
    """Calls with every arrival's text at its time, whatever became of the others, and waits for all answers.

    `call` raises one of `failures` where the server fails. A latency counts from the scheduled time: what the
    generator or the connection holds up is in it. No more calls are begun once so many took longer than
    `p99_seconds` that the 99th percentile must.
    """
    latencies: list[float] = []
    num_failed, num_slow, late = 0, 0, 0.0
    end = arrivals[-1].at
    begin = end * WARMING_SHARE if len(arrivals) > 1 else 0.0
    allowed = 0.01 * sum(arrival.at >= begin for arrival in arrivals)
    processor_began = time.process_time()
    started = time.perf_counter() + LEAD_SECONDS

    async def arrive(arrival: Arrival) -> None:
        nonlocal num_failed, num_slow
        failed = False
        try:
            await call(arrival.text)
        except failures:
            failed = True
        if arrival.at >= begin:
            latency = time.perf_counter() - started - arrival.at
            latencies.append(max(latency, deadline_seconds) if failed else latency)
            num_failed += failed
            num_slow += latencies[-1] > p99_seconds

    async with asyncio.TaskGroup() as calls:
        for arrival in arrivals:
            await asyncio.sleep(max(0.0, started + arrival.at - time.perf_counter()))
            if num_slow > allowed:
                break
            late = max(late, time.perf_counter() - started - arrival.at)
            calls.create_task(arrive(arrival))
    took = time.perf_counter() - started
    return Answered(
        latencies=latencies,
        num_failed=num_failed,
        seconds=max(took, end) - begin,
        late_seconds=late,
        generator_cores=(time.process_time() - processor_began) / took,
    )


async def bisect(
    holds: Callable[[float], Awaitable[bool]], first: float, *, precision: float, max_halvings: int
) -> AsyncIterator[float]:
    """Tries rates from `first` on, doubled or halved until one holds and one does not, then between the two.

    Yields each rate that holds, the highest last. Ends when the two are within `precision` of each other,
    as a share, or when the first was halved so often and none has held.
    """
    low, high, rate = 0.0, math.inf, first
    while high > low * (1 + precision) and rate >= first / 2**max_halvings:
        if await holds(rate):
            low = rate
            yield rate
        else:
            high = rate
        rate = 2 * low if high == math.inf else high / 2 if not low else math.sqrt(low * high)
