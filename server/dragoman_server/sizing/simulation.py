"""A server of several engines under calls that wait for nobody, in virtual time."""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import Priority, SearchOptions, Sentence
from dragoman_server.engine.ticket import Ticket
from dragoman_server.sizing.figures import EngineFigures, Length, Text
from dragoman_server.sizing.virtual_engine import VirtualEngine

NUM_TEXTS = 3000
"""Texts that come."""
WARMING_SHARE = 0.1
"""Share of them at the beginning that is not counted: they find the server empty."""


@dataclass(eq=False)
class _Call:
    came_at: float
    num_left: int
    counts: bool


@dataclass(kw_only=True)
class Outcome:
    """The outcome of the texts that count."""

    seconds: list[float] = field(default_factory=list)
    """Seconds from a text's arrival to its last answer."""
    answered_at: list[float] = field(default_factory=list)
    """When each of all texts was answered."""
    rows: list[int] = field(default_factory=list)
    """Rows of each turn of each engine."""


class ServerSimulation:
    """So many engines behind one door, which takes texts one after the other."""

    def __init__(
        self, engine: EngineFigures, *, door_seconds: float, num_engines: int, per_second: float, seed: int
    ) -> None:
        limits = EngineLimits(max_beam_size=max(EngineLimits.max_beam_size, engine.beam_size))
        self._figures = engine
        self._door_seconds = door_seconds
        self._engines = [VirtualEngine(engine, limits) for _ in range(num_engines)]
        self._load = [0] * num_engines
        self._is_busy = [False] * num_engines
        self._per_second = per_second
        self._rng = random.Random(seed)
        self._calls: dict[Ticket, _Call] = {}
        self._turns: list[tuple[float, int, list[Ticket]]] = []
        self._outcome = Outcome()

    def run(self, num_texts: int = NUM_TEXTS) -> Outcome:
        """Lets so many texts come at random (a Poisson process), each any of the load's."""
        for arrived_at, came_at, text, counts in self._arrivals(num_texts):
            self._advance(until=arrived_at)
            self._take_in(_Call(came_at, len(text), counts), text, arrived_at)
        self._advance(until=float("inf"))
        return self._outcome

    def _arrivals(self, num_texts: int) -> Iterator[tuple[float, float, Text, bool]]:
        """When each text is through the door, when it came, and whether it counts."""
        came_at = door_free_at = 0.0
        for number in range(num_texts):
            came_at += self._rng.expovariate(self._per_second)
            door_free_at = max(came_at, door_free_at) + self._door_seconds
            yield (
                door_free_at,
                came_at,
                self._rng.choice(self._figures.texts),
                number >= WARMING_SHARE * num_texts,
            )

    def _take_in(self, call: _Call, text: Text, now: float) -> None:
        if not text:
            self._answer(call, now)
        for length in text:
            # As a pool deals out: where least is to do.
            number = min(range(len(self._load)), key=self._load.__getitem__)
            ticket = self._ticket(length, now)
            self._load[number] += length.source_tokens
            self._calls[ticket] = call
            self._engines[number].add([ticket], [length.steps])
            self._go_on(number, now)

    def _go_on(self, number: int, now: float) -> None:
        """Begins the engine's next turn, where it has none and there is something to do."""
        if self._is_busy[number]:
            return
        engine = self._engines[number]
        turn = engine.next_turn(now)
        if turn.lane is None:
            return
        ended_at, finished = engine.take(turn, now)
        self._outcome.rows.append(turn.lane.num_rows + len(finished) * self._figures.beam_size)
        self._is_busy[number] = True
        heapq.heappush(self._turns, (ended_at, number, finished))

    def _advance(self, until: float) -> None:
        while self._turns and self._turns[0][0] <= until:
            now, number, finished = heapq.heappop(self._turns)
            self._is_busy[number] = False
            for ticket in finished:
                self._load[number] -= ticket.length
                call = self._calls.pop(ticket)
                call.num_left -= 1
                if not call.num_left:
                    self._answer(call, now)
            self._go_on(number, now)

    def _answer(self, call: _Call, now: float) -> None:
        self._outcome.answered_at.append(now)
        if call.counts:
            self._outcome.seconds.append(now - call.came_at)

    def _ticket(self, length: Length, now: float) -> Ticket:
        options = SearchOptions(
            beam_size=self._figures.beam_size,
            num_hypotheses=1,
            length_penalty=1.0,
            max_output_tokens=2 * length.steps,
        )
        sentence = Sentence(
            source=(3,) * length.source_tokens, options=options, priority=Priority.INTERACTIVE
        )
        return Ticket(sentence=sentence, accepted_at=now)
