"""Decides which lane steps next and who joins it, and knows whose deadline passes when.

Four rules. Each priority has a budget (`budget`): bulk its share, which is less while callers come, and
interactive sentences the rest. Within a priority callers take turns (`waiting`), and of a caller the order of
arrival counts, across lanes too. Newcomers join when they and the turns that they waited outweigh those whom
their encoding holds up (`joining`). Where callers return after a calm, bulk beyond its budget leaves, latest
first.

Pure: it is told the time and what happened, and calls nobody. It belongs to the engine's thread.
"""

import heapq
import math
import weakref
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import chain, count

from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import Priority
from dragoman_server.engine.scheduling.budget import room_for
from dragoman_server.engine.scheduling.joining import ENCODING_TURNS, Patience, choose, group_by_length
from dragoman_server.engine.scheduling.lane import Lane
from dragoman_server.engine.scheduling.pace import Pace, TurnCost
from dragoman_server.engine.ticket import Ticket

MANY_ENDED = 1024
"""So many entries of tickets that ended are kept at least before any is looked for."""


class Deadlines:
    """A heap of tickets that have a deadline; a ticket that ends otherwise is forgotten sooner or later."""

    def __init__(self) -> None:
        # Weak: the heap must not keep a ticket and its result alive after it has ended.
        self._entries: list[tuple[float, int, weakref.ref[Ticket]]] = []
        self._serial = count()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, ticket: Ticket) -> None:
        """Notes the ticket's deadline, if it has one."""
        if (deadline := ticket.sentence.deadline) is not None:
            heapq.heappush(self._entries, (deadline, next(self._serial), weakref.ref(ticket)))

    def pop_passed(self, now: float) -> list[Ticket]:
        """Takes out tickets whose deadline has passed, some of which may have ended otherwise."""
        passed = []
        while self._entries and self._entries[0][0] <= now:
            passed.append(heapq.heappop(self._entries)[2]())
        return list(filter(None, passed))

    def forget_ended(self, num_there: int, there: Callable[[], Set[Ticket]]) -> None:
        """Keeps the heap from outgrowing the tickets that are still `there`, of which there are so many."""
        if len(self._entries) > 2 * num_there + MANY_ENDED:
            present = there()
            self._entries = [entry for entry in self._entries if entry[2]() in present]
            heapq.heapify(self._entries)


CALM_SECONDS = 3.0
"""Seconds without interactive sentences after which bulk may lengthen steps. Whoever is set back later loses
a fraction of a second of work."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The decision what to do next."""

    lane: Lane | None
    """Which lane to advance; None where nothing is left to do."""
    groups: list[list[Ticket]]
    """The tickets that join it, in groups to encode together."""
    late: list[Ticket]
    """The tickets that were dropped, because an answer in time is out of reach."""


class Scheduler:
    """The lanes of an engine and the tickets in them, each of which it holds until it is removed."""

    def __init__(self, limits: EngineLimits, *, encoding_turns: float = ENCODING_TURNS) -> None:
        """An encoding holds everybody up for so many turns, as far as it does not depend on its sentences."""
        self._limits = limits
        self._lanes: dict[int, Lane] = {}
        self._deadlines = Deadlines()
        self._num_arrived = 0
        self._patience = Patience(encoding_turns)
        self._turn_cost = TurnCost()
        self._pace = Pace(self._turn_cost)
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
        return sum(lane.waiting.number(priority) for lane in self._lanes.values())

    @property
    def num_running(self) -> int:
        """Sentences that are being encoded or decoded."""
        return sum(lane.num_running for lane in self._lanes.values())

    @property
    def num_rows(self) -> int:
        """Rows that they take."""
        return sum(lane.num_rows for lane in self._lanes.values())

    @property
    def row_seconds(self) -> float:
        """What a row adds to a turn, as far as turns before tell; 0 as long as nothing is known."""
        return self._turn_cost.row_seconds

    def add(self, tickets: Sequence[Ticket]) -> None:
        """Lets tickets wait in the lanes of their beam sizes."""
        for ticket in tickets:
            beam_size = ticket.sentence.options.beam_size
            if beam_size not in self._lanes:
                self._lanes[beam_size] = Lane(beam_size, continuous=self._limits.continuous)
            self._num_arrived += 1
            ticket.arrival = self._num_arrived
            self._lanes[beam_size].waiting.add(ticket)
            self._deadlines.add(ticket)

    def remove(self, tickets: Iterable[Ticket]) -> set[Ticket]:
        """Takes out tickets that ended, however they did. Returns the ones that were still there."""
        if not (sought := frozenset(tickets)):
            return set()
        return set(chain.from_iterable(lane.remove(sought) for lane in self._lanes.values()))

    def expire(self, now: float) -> set[Ticket]:
        """Takes out and returns the tickets whose deadline has passed."""
        passed = self._deadlines.pop_passed(now)
        self._deadlines.forget_ended(
            self.num_waiting + self.num_running,
            lambda: {t for lane in self._lanes.values() for t in (*lane.running, *lane.waiting)},
        )
        return self.remove(passed)

    def next_turn(self, now: float) -> Turn:
        """Lanes with anything to do take turns, one step each. Tickets that wait for that lane join it.

        A sentence that can't be answered by its deadline any more is dropped before it is encoded, unless
        nothing was running: what is known of the pace may be long out of date.
        """
        late: list[Ticket] = []
        self._give_way(now)
        for beam_size, lane in list(self._lanes.items()):
            self._lanes[beam_size] = self._lanes.pop(beam_size)
            was_idle = not self.num_running
            # Batches that end as a whole are joined by nobody.
            joining = self._joining(lane) if self._limits.continuous or not lane.num_running else []
            if joining and self._patience.is_worth(lane, joining):
                lane.join(joining)
                for ticket in joining:
                    for any_lane in self._lanes.values():
                        any_lane.waiting.note_served(ticket, self._num_arrived)
            if not was_idle:
                hopeless = [ticket for ticket in lane.joining if self._is_late(ticket, now)]
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
        self._turn_cost.observe(lane.num_rows, seconds)

    def on_finish(self, ticket: Ticket, steps: int) -> None:
        """A sentence was answered after so many steps."""
        self._pace.on_finish(source_tokens=ticket.length, steps=steps)

    def _joining(self, lane: Lane) -> list[Ticket]:
        """The tickets that would join a lane now: interactive before bulk, of which one always runs."""
        interactive, bulk = (lane.waiting.first(priority) for priority in Priority)
        order = list(Priority)
        if interactive and bulk and bulk.arrival < interactive.arrival:
            num_bulk = sum(any_lane.num_bulk for any_lane in self._lanes.values())
            order.sort(key=lambda priority: priority is Priority.INTERACTIVE and not num_bulk)
        joining: list[Ticket] = []
        for priority in order:
            if lane.waiting.number(priority):
                rows = self._max_bulk_rows(lane)
                room = room_for(priority, lane, self.lanes, self._limits, bulk_rows=rows, joining=joining)
                joining += choose(lane, priority, joining, room, max_rows=self._limits.max_rows)
        return joining

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
        bulk = [(t.encoding_at, lane, t) for lane in self._lanes.values() for t in lane.running if t.is_bulk]
        max_rows, num_rows = self._max_bulk_rows(), 0
        beyond: dict[Lane, list[Ticket]] = {}
        for number, (_, lane, ticket) in enumerate(sorted(bulk, key=lambda entry: entry[0])):
            num_rows += lane.beam_size
            if number and num_rows > max_rows:
                beyond.setdefault(lane, []).append(ticket)
        for lane, tickets in beyond.items():
            # They begin anew, at the heads of their queues.
            lane.remove(frozenset(tickets))
            lane.waiting.put_back(tickets)

    def _is_late(self, ticket: Ticket, now: float) -> bool:
        """Whether an answer by the deadline is out of reach: each busy lane has a turn for each token."""
        if ticket.sentence.deadline is None:
            return False
        # Rows of a lane's turn without those who are about to join it, unless it is nobody else's.
        lanes = ((lane, lane.num_running) for lane in self._lanes.values() if lane.num_running)
        turns = [(number - len(lane.joining) or number) * lane.beam_size for lane, number in lanes]
        return now + self._pace.least_seconds(ticket.sentence, turns) > ticket.sentence.deadline
