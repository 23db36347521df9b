"""How many servers a load takes, and what each is like then. Pure arithmetic and virtual time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_server.engine.limits import EngineLimits
from dragoman_server.sizing.calibration import LoadError
from dragoman_server.sizing.figures import EngineFigures
from dragoman_server.sizing.measuring import Measured
from dragoman_server.sizing.simulation import NUM_TEXTS, Outcome, ServerSimulation

MAX_SERVERS = 10_000
LIGHT = 0.02
"""Share of its capacity at which a server is as quick as it gets."""
MEMORY_STEP = 64 << 20
"""Bytes to which memory is rounded up."""
_SEED = 1
_CROWD = 1e6


@dataclass(frozen=True, kw_only=True)
class Objective:
    """The load, and the latency that it is to have."""

    per_second: float
    """Texts a second, of all servers together."""
    p99_seconds: float
    """99 of 100 are to be answered within so long."""
    max_share: float
    """Largest share of their capacity that servers are loaded to."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The latency that callers of one server see at a load."""

    p50_seconds: float
    p99_seconds: float
    rows: float
    """Rows of a turn, on average."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The fewest servers that do, and how each is set up."""

    num_servers: int
    cores: int
    """Cores of each server."""
    capacity: float
    """Most texts a second of each."""
    share: float
    """The part of that capacity which each server is loaded to."""
    expected: Expected
    memory_bytes: int
    """Memory of each server, with its models loaded once."""
    max_rows: int
    """Rows of a batch with which a long sentence is still in time."""
    max_queue_seconds: float
    """The longest wait in the queue that still meets the objective."""
    scale_at_seconds: float
    """Expected time in the queue that uses up what the 99th percentile leaves."""


class Server:
    """A server with so many cores, computed from measured figures."""

    def __init__(self, measured: Measured, *, cores: int) -> None:
        self._engine = measured.engine.slower(measured.slowdown)
        self._figures = server = measured.server
        self._cores = cores
        self.capacity = self._capacity()
        """Most texts a second: engines and the door share the cores, and the door is one process."""
        light = self._simulate(LIGHT * self.capacity).seconds
        # What no processor takes: the network, threads that wake, the client.
        self._call_seconds = max(0.0, server.lone_seconds - _percentile(sorted(light), 50))

    @property
    def engine(self) -> EngineFigures:
        """The cost of an engine's work when all cores work."""
        return self._engine

    def expected(self, per_second: float) -> Expected:
        """The latency that callers see at so many texts a second, fewer than the server's capacity."""
        outcome = self._simulate(per_second)
        seconds = sorted(outcome.seconds)
        return Expected(
            p50_seconds=_percentile(seconds, 50) + self._call_seconds,
            p99_seconds=_percentile(seconds, 99) + self._call_seconds,
            rows=sum(outcome.rows) / len(outcome.rows),
        )

    def _simulate(self, per_second: float) -> Outcome:
        taken = per_second * self._figures.door_seconds / self._cores
        return ServerSimulation(
            self._engine.slower(1 / (1 - taken)),
            door_seconds=self._figures.door_seconds,
            num_engines=self._cores,
            per_second=per_second,
            seed=_SEED,
        ).run(NUM_TEXTS)

    def _capacity(self) -> float:
        crowd = ServerSimulation(
            self._engine, door_seconds=0.0, num_engines=self._cores, per_second=_CROWD, seed=_SEED
        ).run(NUM_TEXTS)
        # In the middle all engines are full.
        answered = sorted(crowd.answered_at)
        first, last = answered[len(answered) // 4], answered[3 * len(answered) // 4]
        engines, door = len(answered) / 2 / (last - first), self._figures.door_seconds
        return min(1 / (1 / engines + door / self._cores), 1 / door)


def make_plan(measured: Measured, objective: Objective, *, cores: int) -> Plan:
    """The fewest servers of so many cores. Raises LoadError where no number of them is quick enough."""
    one = Server(measured, cores=cores)
    least = math.ceil(objective.per_second / (objective.max_share * one.capacity))
    lightest = one.expected(LIGHT * one.capacity)
    if lightest.p99_seconds > objective.p99_seconds:
        raise LoadError(
            f"99 of 100 texts take {1000 * lightest.p99_seconds:.0f} ms where nobody else calls, and are to "
            f"be answered in {1000 * objective.p99_seconds:.0f}: more servers make none quicker; a smaller "
            "--beam, shorter texts or a quicker machine do"
        )

    def is_enough(number: int) -> bool:
        expected = one.expected(objective.per_second / number)
        return expected.p99_seconds <= objective.p99_seconds

    too_few, number = least - 1, least
    while not is_enough(number):
        too_few, number = number, 2 * number
        if number > MAX_SERVERS:
            raise LoadError(f"it would take more than {MAX_SERVERS:,} servers; give each more --cores")
    while number - too_few > 1:
        middle = (number + too_few) // 2
        too_few, number = (too_few, middle) if is_enough(middle) else (middle, number)
    per_server = objective.per_second / number
    expected = one.expected(per_server)
    return Plan(
        num_servers=number,
        cores=cores,
        capacity=one.capacity,
        share=per_server / one.capacity,
        expected=expected,
        memory_bytes=math.ceil(measured.server.memory_bytes / MEMORY_STEP) * MEMORY_STEP,
        max_rows=_max_rows(one.engine, objective.p99_seconds),
        max_queue_seconds=objective.p99_seconds - expected.p50_seconds,
        scale_at_seconds=max(0.0, objective.p99_seconds - expected.p99_seconds),
    )


def _max_rows(engine: EngineFigures, seconds: float) -> int:
    """The largest batch that ends a sentence of the longest hundredth in time; of one sentence at least."""
    steps = _percentile(sorted(length.steps for text in engine.texts for length in text), 99)
    sizes = range(engine.beam_size, EngineLimits.max_rows + 1, engine.beam_size)
    return max((rows for rows in sizes if steps * engine.step(rows, 0) <= seconds), default=engine.beam_size)


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
