"""Who is decoded next: lanes in turn, deadlines, and the bound on who waits.

Pure: it is told the time and what happened, and calls nobody. Not thread-safe: the engine's lock guards it.
"""

import heapq
from collections.abc import Iterable, Sequence
from itertools import chain, count

from dragoman_server.engine.errors import QueueFullError, SentenceError
from dragoman_server.engine.lane import Lane, padded
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import Sentence
from dragoman_server.engine.ticket import Ticket


class Scheduler:
    """The lanes of an engine and the tickets in them, each of which it holds until it is removed."""

    def __init__(self, limits: EngineLimits) -> None:
        self._limits = limits
        self._lanes: dict[int, Lane] = {}
        self._deadlines: list[tuple[float, int, Ticket]] = []
        self._serial = count()

    @property
    def num_waiting(self) -> int:
        """Sentences that no batch has taken up."""
        return sum(len(lane.waiting) for lane in self._lanes.values())

    @property
    def num_running(self) -> int:
        """Sentences that are being encoded or decoded."""
        return sum(lane.num_running for lane in self._lanes.values())

    def check(self, sentence: Sentence) -> None:
        """Raises SentenceError for a sentence that no batch could ever hold."""
        beam_size, length = sentence.options.beam_size, len(sentence.source)
        if beam_size > self._limits.max_beam_size:
            raise SentenceError(
                f"beam_size is {beam_size}, and the engine's max_beam_size {self._limits.max_beam_size}"
            )
        if padded(length) > self._limits.max_source_positions:
            raise SentenceError(
                f"the source has {length} tokens, padded to {padded(length)}, "
                f"and the engine's max_source_positions is {self._limits.max_source_positions}"
            )

    def add(self, tickets: Sequence[Ticket]) -> None:
        """Takes all the tickets or raises QueueFullError."""
        num_waiting = self.num_waiting
        if num_waiting + len(tickets) > self._limits.max_queue:
            raise QueueFullError(
                num_sentences=len(tickets), num_waiting=num_waiting, max_queue=self._limits.max_queue
            )
        for ticket in tickets:
            beam_size = ticket.sentence.options.beam_size
            if beam_size not in self._lanes:
                self._lanes[beam_size] = Lane(beam_size, self._limits)
            self._lanes[beam_size].waiting[ticket] = None
            if ticket.sentence.deadline is not None:
                heapq.heappush(self._deadlines, (ticket.sentence.deadline, next(self._serial), ticket))

    def remove(self, tickets: Iterable[Ticket]) -> set[Ticket]:
        """Takes out tickets that ended, however they did. Returns those that were still there."""
        sought = frozenset(tickets)
        if not sought:
            return set()
        return set(chain.from_iterable(lane.remove(sought) for lane in self._lanes.values()))

    def expire(self, now: float) -> set[Ticket]:
        """Takes out and returns the tickets whose deadline has passed."""
        passed: list[Ticket] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            passed.append(heapq.heappop(self._deadlines)[2])
        self._forget_ended()
        return self.remove(passed)

    def next_lane(self) -> Lane | None:
        """The lane whose turn it is: those with anything to do take turns, one step each."""
        for beam_size, lane in list(self._lanes.items()):
            self._lanes[beam_size] = self._lanes.pop(beam_size)
            if lane.waiting or lane.num_running:
                return lane
        return None

    def clear(self) -> list[Ticket]:
        """Takes out and returns everything."""
        tickets = [t for lane in self._lanes.values() for t in (*lane.running, *lane.waiting)]
        self._lanes.clear()
        self._deadlines.clear()
        return tickets

    def _forget_ended(self) -> None:
        """Keeps the heap of deadlines from outgrowing the tickets that are still there."""
        if len(self._deadlines) > 2 * (self.num_waiting + self.num_running) + 1024:
            there = {t for lane in self._lanes.values() for t in (*lane.running, *lane.waiting)}
            self._deadlines = [entry for entry in self._deadlines if entry[2] in there]
            heapq.heapify(self._deadlines)
