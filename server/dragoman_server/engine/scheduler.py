"""Who is decoded next: lanes in turn, what each may hold, deadlines, and the bound on who waits.

Interactive sentences go first, in whichever lane, and bulk never has more than its share of rows, of source
positions and of the queue. As long as interactive ones come, it has no more than its share of a step's time
either: where they come after a calm, bulk sentences beyond that are set back and begin anew, those who joined
last first. But whoever was passed over for too long goes next, and the others are held back until it joined:
a lane's bulk after MAX_PASSES times that interactive sentences were let in, and a lane that nobody runs in
after as many turns. In a lane where both are, bulk and interactive ones take turns.

Pure: it is told the time and what happened, and calls nobody. Not thread-safe: the engine's lock guards it.
"""

import heapq
import math
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count

from dragoman_server.engine.errors import SentenceError
from dragoman_server.engine.grouping import group_by_length
from dragoman_server.engine.lane import MAX_PASSES, Lane
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.pace import Pace, RecentLow
from dragoman_server.engine.padding import padded_positions
from dragoman_server.engine.request import Priority, Sentence
from dragoman_server.engine.room import Room
from dragoman_server.engine.ticket import Ticket

CALM_SECONDS = 3.0
"""How long nobody interactive was there before bulk may make steps longer. Who is set back afterwards loses a
fraction of a second's work, which is little beside that."""


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
        # What ended is answered, and nobody's business but its caller's: the heap does not keep it.
        self._deadlines: list[tuple[float, int, weakref.ref[Ticket]]] = []
        self._serial = count()
        self._pace = Pace()
        self._step_seconds: dict[Lane, RecentLow] = {}
        self._hunger: dict[Lane, int] = {}
        self._bulk_passes: dict[Lane, int] = {}
        self._had_bulk_first: set[Lane] = set()
        self._urgent_at = -math.inf
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

    def check(self, sentence: Sentence) -> None:
        """Raises SentenceError for a sentence that no batch could ever hold."""
        beam_size, length = sentence.options.beam_size, len(sentence.source)
        if beam_size > self._limits.max_beam_size:
            raise SentenceError(
                f"beam_size is {beam_size}, and the engine's max_beam_size {self._limits.max_beam_size}; "
                "ask for less, or start the server with a larger --max-beam-size"
            )
        if padded_positions(length) > self._limits.max_source_tokens:
            raise SentenceError(
                f"the source has {length} tokens, padded to {padded_positions(length)}, "
                f"and the engine's max_source_tokens is {self._limits.max_source_tokens}; "
                "send shorter sentences, or start the server with larger --max-source-tokens"
            )

    def add(self, tickets: Sequence[Ticket]) -> None:
        """Takes all the tickets or raises QueueFullError."""
        self._limits.check_queue(
            [ticket.sentence for ticket in tickets],
            num_waiting=self.num_waiting,
            num_bulk_waiting=self.num_waiting_of(Priority.BULK),
        )
        for ticket in tickets:
            beam_size = ticket.sentence.options.beam_size
            if beam_size not in self._lanes:
                self._lanes[beam_size] = Lane(beam_size, continuous=self._limits.continuous)
            self._lanes[beam_size].waiting.add(ticket)
            if ticket.sentence.deadline is not None:
                entry = (ticket.sentence.deadline, next(self._serial), weakref.ref(ticket))
                heapq.heappush(self._deadlines, entry)

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
            ticket = heapq.heappop(self._deadlines)[2]()
            if ticket is not None:
                passed.append(ticket)
        self._forget_ended()
        return self.remove(passed)

    def next_turn(self, now: float) -> Turn:
        """Lanes with anything to do take turns, one step each. Who waits for that lane joins it.

        A sentence that can't be answered by its deadline any more is dropped before it is encoded, unless
        nothing was running: what is known of the pace may be long out of date.
        """
        late: list[Ticket] = []
        self._give_way(now)
        first = self._overdue()
        for beam_size, lane in list(self._lanes.items()):
            self._lanes[beam_size] = self._lanes.pop(beam_size)
            was_idle = not self.num_running
            bulk_first = lane is first and self._is_bulks_turn(lane)
            newcomers = lane.admit(self._room(lane, first), bulk_first=bulk_first)
            self._count_passes(lane, newcomers)
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

    def on_step(self, lane: Lane, seconds: float) -> None:
        """A lane advanced by one token."""
        self._step_seconds.setdefault(lane, RecentLow()).observe(seconds)
        if lane.num_rows:
            self._pace.on_step(lane.num_rows, seconds)

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
        self._bulk_passes.clear()
        self._had_bulk_first.clear()
        return tickets

    def _count_passes(self, lane: Lane, newcomers: Sequence[Ticket]) -> None:
        """Counts who is passed over in the turn of a lane that lets these newcomers in."""
        joined = {ticket.sentence.priority for ticket in newcomers}
        if Priority.INTERACTIVE in joined:
            self._had_bulk_first.discard(lane)
        elif Priority.BULK in joined:
            self._had_bulk_first.add(lane)
        for each in self._lanes.values():
            if not each.waiting.queue(Priority.BULK) or (each is lane and Priority.BULK in joined):
                self._bulk_passes[each] = 0
            elif Priority.INTERACTIVE in joined:
                self._bulk_passes[each] = self._bulk_passes.get(each, 0) + 1
        if lane.num_running or not lane.waiting:
            self._hunger[lane] = 0
        elif lane.waiting.queue(Priority.INTERACTIVE) or not self._is_awaited_elsewhere(lane):
            self._hunger[lane] = self._hunger.get(lane, 0) + 1

    def _is_bulks_turn(self, lane: Lane) -> bool:
        """Whether bulk was passed over for too long, and the interactive ones had their turn since."""
        is_others_turn = lane in self._had_bulk_first and bool(lane.waiting.queue(Priority.INTERACTIVE))
        return self._bulk_passes.get(lane, 0) >= MAX_PASSES and not is_others_turn

    def _overdue(self) -> Lane | None:
        """The lane that goes before the others: it was passed over longest, and for too long."""

        def passes(lane: Lane) -> int:
            # Sentences may have been cancelled since they were counted.
            hunger = self._hunger.get(lane, 0) if lane.waiting and not lane.num_running else 0
            bulk_passes = self._bulk_passes.get(lane, 0) if lane.waiting.queue(Priority.BULK) else 0
            return max(hunger, bulk_passes)

        longest = max(self._lanes.values(), key=passes, default=None)
        return longest if longest is not None and passes(longest) >= MAX_PASSES else None

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
        if first is not None or self._is_awaited_elsewhere(lane):
            return replace(room, bulk_rows=0, lone_bulk=False)
        return room

    def _is_awaited_elsewhere(self, lane: Lane) -> bool:
        """Whether interactive sentences wait in another lane."""
        return any(
            other.waiting.queue(Priority.INTERACTIVE) for other in self._lanes.values() if other is not lane
        )

    def _what_is_left(self, lane: Lane, *, reserve: bool) -> Room:
        """What the other lanes leave; with `reserve` what they wait for is theirs, up to an equal share."""
        others = [other for other in self._lanes.values() if other is not lane]
        interactive = [reserve and bool(other.waiting.queue(Priority.INTERACTIVE)) for other in others]
        bulk = [reserve and bool(other.waiting.queue(Priority.BULK)) for other in others]
        limits = self._limits
        return Room(
            rows=_left(limits.max_rows, [other.num_rows for other in others], interactive),
            positions=_left(limits.max_source_tokens, [other.num_positions for other in others], interactive),
            bulk_rows=_left(self._max_bulk_rows, [other.num_bulk_rows for other in others], bulk),
            bulk_positions=_left(
                limits.max_bulk_source_tokens, [other.num_bulk_positions for other in others], bulk
            ),
            lone_bulk=not any(each.num_bulk for each in self._lanes.values()),
        )

    @property
    def _max_bulk_rows(self) -> int:
        """Most rows of bulk as things are."""
        limits = self._limits
        if self._is_calm:
            return limits.max_bulk_rows
        return int(min(limits.max_bulk_rows, self._pace.rows_within(limits.max_bulk_step_seconds)))

    def _give_way(self, now: float) -> None:
        """Sees whether it is calm; where it no longer is, sets back what of bulk makes steps too long.

        One of bulk goes on however long it takes, and so do those of request-level batches, which end as one.
        """
        was_calm = self._is_calm
        if any(lane.is_urgent for lane in self._lanes.values()):
            self._urgent_at = now
        self._is_calm = now - self._urgent_at >= CALM_SECONDS
        if not was_calm or self._is_calm or not self._limits.continuous:
            return
        bulk = [
            (ticket.encoding_at, lane, ticket)
            for lane in self._lanes.values()
            for ticket in lane.running
            if ticket.sentence.priority is Priority.BULK
        ]
        max_rows = self._max_bulk_rows
        num_rows = 0
        beyond: dict[Lane, list[Ticket]] = {}
        for number, (_, lane, ticket) in enumerate(sorted(bulk, key=lambda entry: entry[0])):
            num_rows += lane.beam_size
            if number and num_rows > max_rows:
                beyond.setdefault(lane, []).append(ticket)
        for lane, tickets in beyond.items():
            lane.set_back(tickets)

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
            self._deadlines = [entry for entry in self._deadlines if entry[2]() in there]
            heapq.heapify(self._deadlines)


def _left(total: int, held: Sequence[int], is_more_awaited: Sequence[bool]) -> int:
    """What is left of a budget beside others who hold so much of it, and who may wait for more."""
    share = total // (1 + sum(is_more_awaited))
    return total - sum(max(each, share * more) for each, more in zip(held, is_more_awaited, strict=True))
