"""Decides which lane steps next and who joins it.

Interactive sentences join before bulk, in every lane. Bulk never exceeds its share of rows and positions and,
while interactive sentences keep coming, its share of a step's time: where they return after a calm, the bulk
beyond that is set back, latest first.

Nobody starves (`fairness`): bulk that interactive sentences were let in before MAX_PASSES times, or a lane
that had nothing running for as many turns, goes next, and the others wait until it has joined. In a lane that
holds both, the two then alternate.

Pure: it is told the time and what happened, and calls nobody. Not thread-safe: the engine's lock guards it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import Priority
from dragoman_server.engine.scheduling.deadlines import Deadlines
from dragoman_server.engine.scheduling.fairness import Fairness, is_awaited_elsewhere
from dragoman_server.engine.scheduling.grouping import group_by_length
from dragoman_server.engine.scheduling.lane import Lane
from dragoman_server.engine.scheduling.pace import Pace, RecentLow
from dragoman_server.engine.scheduling.room import Room
from dragoman_server.engine.scheduling.turn_cost import TurnCost
from dragoman_server.engine.ticket import Ticket

CALM_SECONDS = 3.0
"""Seconds without interactive sentences after which bulk may lengthen steps. Whoever is set back later loses
a fraction of a second of work."""


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
        self._deadlines = Deadlines()
        self._fairness = Fairness()
        self._pace = Pace()
        self._turn_seconds: dict[Lane, RecentLow] = {}
        self._turn_cost = TurnCost()
        self._urgent_at = -math.inf
        self._callers_beams = {1}
        self._is_calm = True

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """All lanes, the one whose turn is next first."""
        return tuple(self._lanes.values())

    @property
    def num_waiting(self) -> int:
        """Sentences that no batch has taken up."""
        return sum(len(lane.waiting) for lane in self._lanes.values())

    def num_waiting_of(self, priority: Priority) -> int:
        """How many of them have that priority."""
        return sum(len(lane.waiting.queue(priority)) for lane in self._lanes.values())

    @property
    def num_running(self) -> int:
        """Sentences that are being encoded or decoded."""
        return sum(lane.num_running for lane in self._lanes.values())

    def add(self, tickets: Sequence[Ticket]) -> None:
        """Lets tickets wait in the lanes of their beam sizes."""
        for ticket in tickets:
            beam_size = ticket.sentence.options.beam_size
            if beam_size not in self._lanes:
                self._lanes[beam_size] = Lane(beam_size, continuous=self._limits.continuous)
            self._lanes[beam_size].waiting.add(ticket)
            self._deadlines.add(ticket)

    def remove(self, tickets: Iterable[Ticket]) -> set[Ticket]:
        """Takes out tickets that ended, however they did. Returns those that were still there."""
        sought = frozenset(tickets)
        if not sought:
            return set()
        return set(chain.from_iterable(lane.remove(sought) for lane in self._lanes.values()))

    def expire(self, now: float) -> set[Ticket]:
        """Takes out and returns the tickets whose deadline has passed."""
        passed = self._deadlines.pop_passed(now)
        self._deadlines.forget_ended(self.num_waiting + self.num_running, lambda: set(self._tickets()))
        return self.remove(passed)

    def next_turn(self, now: float) -> Turn:
        """Lanes with anything to do take turns, one step each. Who waits for that lane joins it.

        A sentence that can't be answered by its deadline any more is dropped before it is encoded, unless
        nothing was running: what is known of the pace may be long out of date.
        """
        late: list[Ticket] = []
        self._give_way(now)
        first = self._fairness.overdue(self._lanes.values())
        for beam_size, lane in list(self._lanes.items()):
            self._lanes[beam_size] = self._lanes.pop(beam_size)
            if not lane.num_running:
                # What its turns took is out of date, and who is refused by it does not bring it up to date.
                self._turn_seconds.pop(lane, None)
            was_idle = not self.num_running
            bulk_first = lane is first and self._fairness.is_bulks_turn(lane)
            newcomers = lane.admit(self._room(lane, first), bulk_first=bulk_first)
            self._fairness.count(lane, newcomers, self._lanes.values())
            if not was_idle:
                hopeless = [ticket for ticket in newcomers if self._is_late(ticket, now)]
                late += hopeless
                lane.remove(frozenset(hopeless))
            if lane.num_running:
                return Turn(lane=lane, groups=group_by_length(lane.joining), late=late)
        return Turn(lane=None, groups=[], late=late)

    def on_encode(self, seconds: float) -> None:
        """A group was encoded."""
        self._pace.on_encode(seconds)

    def on_turn(self, lane: Lane, seconds: float) -> None:
        """A lane had its turn: who joins was encoded, and all of it advanced by one token."""
        self._turn_seconds.setdefault(lane, RecentLow()).observe(seconds)
        self._pace.on_turn(lane.num_rows, seconds)
        self._turn_cost.observe(lane.num_rows, seconds)

    def on_finish(self, ticket: Ticket, steps: int) -> None:
        """A sentence was answered after so many steps."""
        self._pace.on_finish(source_tokens=ticket.length, steps=steps)

    def clear(self) -> list[Ticket]:
        """Takes out and returns everything."""
        tickets = self._tickets()
        self._lanes.clear()
        self._deadlines.clear()
        self._fairness.clear()
        self._turn_seconds.clear()
        return tickets

    def _tickets(self) -> list[Ticket]:
        return [t for lane in self._lanes.values() for t in (*lane.running, *lane.waiting)]

    def _room(self, lane: Lane, first: Lane | None) -> Room:
        """What a lane may hold now: no bulk joins it while interactive sentences wait in another.

        Before the `first` lane, if there is one, nobody joins another; but interactive ones do where it is
        bulk's share that the first lane waits for.
        """
        is_held = first is not None and (
            (not first.num_running and bool(first.waiting.queue(Priority.INTERACTIVE)))
            or first.may_take_bulk(self._what_is_left(first, reserve=False))
        )
        room = self._what_is_left(lane, reserve=not (is_held and lane is first) and self.num_running > 0)
        if lane is first:
            return room
        if is_held:
            return replace(room, rows=0)
        if first is not None or is_awaited_elsewhere(lane, self._lanes.values()):
            return replace(room, bulk_rows=0, lone_bulk=False)
        return room

    def _what_is_left(self, lane: Lane, *, reserve: bool) -> Room:
        """What the other lanes leave; with `reserve` what they wait for is theirs, up to an equal share."""
        limits = self._limits
        others = [other for other in self._lanes.values() if other is not lane]
        interactive = [reserve and bool(other.waiting.queue(Priority.INTERACTIVE)) for other in others]
        bulk = [reserve and bool(other.waiting.queue(Priority.BULK)) for other in others]
        return Room(
            rows=_left(limits.max_rows, [other.num_rows for other in others], interactive),
            positions=_left(limits.max_source_tokens, [other.num_positions for other in others], interactive),
            bulk_rows=_left(self._max_bulk_rows(lane), [other.num_bulk_rows for other in others], bulk),
            bulk_positions=_left(
                limits.max_bulk_source_tokens, [other.num_bulk_positions for other in others], bulk
            ),
            lone_bulk=not any(each.num_bulk for each in self._lanes.values()),
        )

    def _max_bulk_rows(self, joined: Lane | None = None) -> int:
        """Most rows of bulk as things are, or if some joined a lane.

        Lanes that nobody else needs take turns for bulk alone, which callers wait for.
        """
        limits = self._limits
        if self._is_calm:
            return limits.max_bulk_rows
        others = [lane for lane in self._lanes.values() if lane.beam_size not in self._callers_beams]
        beside = self._turn_cost.rows_beside(
            min(self._callers_beams),
            limits.max_bulk_slowdown,
            num_more_turns=sum(lane is joined or lane.num_bulk > 0 for lane in others),
        )
        # A rounding error costs nobody a place.
        return int(min(limits.max_bulk_rows, beside + 1e-6))

    def _give_way(self, now: float) -> None:
        """Sees whether it is calm; where it no longer is, sets back what of bulk makes steps too long.

        One of bulk goes on however long it takes, and so do those of request-level batches, which end as one.
        """
        was_calm = self._is_calm
        if urgent := {lane.beam_size for lane in self._lanes.values() if lane.is_urgent}:
            self._urgent_at, self._callers_beams = now, urgent
        self._is_calm = now - self._urgent_at >= CALM_SECONDS
        if not was_calm or self._is_calm or not self._limits.continuous:
            return
        bulk = [
            (ticket.encoding_at, lane, ticket)
            for lane in self._lanes.values()
            for ticket in lane.running
            if ticket.is_bulk
        ]
        max_rows = self._max_bulk_rows()
        num_rows = 0
        beyond: dict[Lane, list[Ticket]] = {}
        for number, (_, lane, ticket) in enumerate(sorted(bulk, key=lambda entry: entry[0])):
            num_rows += lane.beam_size
            if number and num_rows > max_rows:
                beyond.setdefault(lane, []).append(ticket)
        for lane, tickets in beyond.items():
            lane.set_back(tickets)

    def _is_late(self, ticket: Ticket, now: float) -> bool:
        """Whether an answer by the deadline is out of reach: each busy lane has a turn for each token."""
        if ticket.sentence.deadline is None:
            return False
        seconds_per_token = sum(map(self._seconds_per_turn, self._lanes.values()))
        least_seconds = self._pace.least_seconds(ticket.sentence, seconds_per_token=seconds_per_token)
        return now + least_seconds > ticket.sentence.deadline

    def _seconds_per_turn(self, lane: Lane) -> float:
        """As its turns lately took; where it stood still, as so many rows take elsewhere."""
        if not lane.num_running:
            return 0.0
        if (turn := self._turn_seconds.get(lane)) is not None:
            return turn.value
        return self._pace.least_turn_seconds(lane.num_rows)


def _left(total: int, held: Sequence[int], is_more_awaited: Sequence[bool]) -> int:
    """What is left of a budget beside others who hold so much of it, and who may wait for more."""
    share = total // (1 + sum(is_more_awaited))
    return total - sum(max(each, share * more) for each, more in zip(held, is_more_awaited, strict=True))
