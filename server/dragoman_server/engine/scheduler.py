"""Who is decoded next: lanes in turn, what each may hold, deadlines, and the bound on who waits.

Pure: it is told the time and what happened, and calls nobody. Not thread-safe: the engine's lock guards it.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count

from dragoman_server.engine.errors import QueueFullError, SentenceError
from dragoman_server.engine.lane import MAX_PASSES, Lane, group_by_length, padded
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.pace import Pace, RunningMean
from dragoman_server.engine.request import Sentence
from dragoman_server.engine.room import Room
from dragoman_server.engine.ticket import Ticket


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What to do next."""

    lane: Lane | None
    """Which lane to advance; None where nothing is left to do."""
    groups: list[list[Ticket]]
    """Who joins it, in groups to encode together."""
    late: list[Ticket]
    """Who was dropped, because an answer in time is out of reach."""


class Scheduler:
    """The lanes of an engine and the tickets in them, each of which it holds until it is removed."""

    def __init__(self, limits: EngineLimits) -> None:
        self._limits = limits
        self._lanes: dict[int, Lane] = {}
        self._deadlines: list[tuple[float, int, Ticket]] = []
        self._serial = count()
        self._pace = Pace()
        self._step_seconds: dict[Lane, RunningMean] = {}
        self._hunger: dict[Lane, int] = {}

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """All lanes, the one whose turn is next first."""
        return tuple(self._lanes.values())

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
        if padded(length) > self._limits.max_source_tokens:
            raise SentenceError(
                f"the source has {length} tokens, padded to {padded(length)}, "
                f"and the engine's max_source_tokens is {self._limits.max_source_tokens}"
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
                self._lanes[beam_size] = Lane(beam_size, continuous=self._limits.continuous)
            self._lanes[beam_size].waiting.add(ticket)
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

    def next_turn(self, now: float) -> Turn:
        """Lanes with anything to do take turns, one step each. Who waits for that lane joins it.

        A sentence that can't be answered by its deadline any more is dropped before it is encoded.
        """
        late: list[Ticket] = []
        hungry = self._hungriest()
        for beam_size, lane in list(self._lanes.items()):
            self._lanes[beam_size] = self._lanes.pop(beam_size)
            hopeless = [
                ticket for ticket in lane.admit(self._room(lane, hungry)) if self._is_late(ticket, now)
            ]
            late += hopeless
            lane.remove(frozenset(hopeless))
            starves = lane.waiting and not lane.num_running
            self._hunger[lane] = self._hunger.get(lane, 0) + 1 if starves else 0
            if lane.num_running:
                return Turn(lane=lane, groups=group_by_length(lane.joining), late=late)
        return Turn(lane=None, groups=[], late=late)

    def on_encode(self, seconds: float) -> None:
        """A group was encoded."""
        self._pace.on_encode(seconds)

    def on_step(self, lane: Lane, seconds: float) -> None:
        """A lane advanced by one token."""
        self._step_seconds.setdefault(lane, RunningMean()).observe(seconds)

    def on_finish(self, ticket: Ticket, steps: int) -> None:
        """A sentence was answered after so many steps."""
        self._pace.on_finish(source_tokens=len(ticket.sentence.source), steps=steps)

    def clear(self) -> list[Ticket]:
        """Takes out and returns everything."""
        tickets = [t for lane in self._lanes.values() for t in (*lane.running, *lane.waiting)]
        self._lanes.clear()
        self._deadlines.clear()
        self._step_seconds.clear()
        self._hunger.clear()
        return tickets

    def _hungriest(self) -> Lane | None:
        """The lane that could let nobody in for longest, if that is MAX_PASSES turns or more."""
        # One whose sentences were cancelled meanwhile is hungry no more.
        starving = [lane for lane in self._lanes.values() if lane.waiting and not lane.num_running]
        overdue = [lane for lane in starving if self._hunger.get(lane, 0) >= MAX_PASSES]
        return max(overdue, key=lambda lane: self._hunger[lane], default=None)

    def _room(self, lane: Lane, hungry: Lane | None) -> Room:
        """What a lane may hold: what the others leave, and what they wait for is theirs up to an equal share.

        Before the hungry lane, if there is one, the others let nobody in.
        """
        others = [other for other in self._lanes.values() if other is not lane]
        rows, positions = self._limits.max_rows, self._limits.max_source_tokens
        num_running = sum(other.num_rows for other in self._lanes.values())
        if hungry is not None and lane is not hungry:
            rows, positions = lane.num_rows, lane.num_positions
        elif lane is hungry or not num_running:
            rows -= sum(other.num_rows for other in others)
            positions -= sum(other.num_positions for other in others)
        else:
            waiting = [other for other in others if other.waiting]
            share = 1 + len(waiting)
            rows -= sum(max(other.num_rows, rows // share * bool(other.waiting)) for other in others)
            positions -= sum(
                max(other.num_positions, positions // share * bool(other.waiting)) for other in others
            )
        bulk_rows = self._limits.max_bulk_rows - sum(other.num_bulk_rows for other in others)
        if not any(other.num_bulk_rows for other in self._lanes.values()):
            # A wide beam may be more than bulk's share: then one sentence at a time.
            bulk_rows = max(bulk_rows, lane.beam_size)
        return Room(rows=rows, bulk_rows=bulk_rows, positions=positions)

    def _is_late(self, ticket: Ticket, now: float) -> bool:
        """Whether an answer by the deadline is out of reach: a token costs each busy lane a step."""
        if ticket.sentence.deadline is None:
            return False
        seconds_per_token = sum(mean.value for lane, mean in self._step_seconds.items() if lane.num_running)
        least_seconds = self._pace.least_seconds(ticket.sentence, seconds_per_token=seconds_per_token)
        return now + least_seconds > ticket.sentence.deadline

    def _forget_ended(self) -> None:
        """Keeps the heap of deadlines from outgrowing the tickets that are still there."""
        if len(self._deadlines) > 2 * (self.num_waiting + self.num_running) + 1024:
            there = {t for lane in self._lanes.values() for t in (*lane.running, *lane.waiting)}
            self._deadlines = [entry for entry in self._deadlines if entry[2] in there]
            heapq.heapify(self._deadlines)
