"""The room that a priority still has in an engine's rows and padded source positions.

Bulk has a budget of its own: its share of the engine, or less while callers come. Interactive sentences have
the rest, and what bulk does not wait for. Within a priority, what comes earlier in turn keeps what it needs.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, takewhile

from dragoman_server.engine.decoder import padded_positions
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import Priority
from dragoman_server.engine.scheduling.lane import Lane
from dragoman_server.engine.ticket import Ticket


@dataclass(frozen=True)
class Amount:
    """Rows, and source positions with their padding."""

    rows: int
    positions: int

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.rows + other.rows, self.positions + other.positions)

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(self.rows - other.rows, self.positions - other.positions)

    def fits(self, room: "Amount") -> bool:
        """Whether there is so much room."""
        return self.rows <= room.rows and self.positions <= room.positions

    def least(self, other: "Amount") -> "Amount":
        """The smaller one of each."""
        return Amount(min(self.rows, other.rows), min(self.positions, other.positions))

    def most(self, other: "Amount") -> "Amount":
        """The larger one of each."""
        return Amount(max(self.rows, other.rows), max(self.positions, other.positions))


NOTHING = Amount(0, 0)


@dataclass(frozen=True, kw_only=True)
class Room:
    """What sentences of one priority that join a lane may take, beside all that run or join already."""

    free: Amount
    """The engine's room."""
    bulk: Amount | None
    """The room of bulk's budget, where they are bulk."""
    lone_bulk: bool = False
    """Whether no other bulk runs: one of bulk may have more than bulk's budget."""

    def places(self, lane: Lane) -> int:
        """How many more the rows hold."""
        places = self.free.rows // lane.beam_size
        if self.bulk is not None:
            places = min(places, max(self.bulk.rows // lane.beam_size, int(self.lone_bulk)))
        return max(0, places)

    def most(self, lane: Lane, joining: Sequence[Ticket], longest: int) -> int:
        """How many more fit, the `longest` of all of the lane included."""
        positions = lane.positions_for(longest)
        most = _most_within(self.free, lane, positions, lane.num_running + len(joining), lane.num_positions)
        if self.bulk is not None:
            most_bulk = _most_within(self.bulk, lane, positions, lane.num_bulk, lane.num_bulk_positions)
            most = min(most, max(most_bulk, int(self.lone_bulk)))
        return most


def _most_within(room: Amount, lane: Lane, positions: int, number: int, taken: int) -> int:
    """How many more fit into the room beside a `number` that took so many positions, all padded anew."""
    return min(room.rows // lane.beam_size, (room.positions + taken) // positions - number)


def room_for(
    priority: Priority,
    lane: Lane,
    lanes: Collection[Lane],
    limits: EngineLimits,
    *,
    bulk_rows: int,
    joining: Sequence[Ticket] = (),
) -> Room:
    """What sentences of a priority may take that join a lane, beside interactive ones that are `joining`.

    All of bulk may have `bulk_rows` at most; one that needs more than bulk's share runs by itself.
    """
    whole = Amount(limits.max_rows, limits.max_source_tokens)
    bulk_share = Amount(bulk_rows, limits.max_bulk_source_tokens)
    running = _sum(Amount(any_lane.num_rows, any_lane.num_positions) for any_lane in lanes)
    running_bulk = _sum(Amount(any_lane.num_bulk_rows, any_lane.num_bulk_positions) for any_lane in lanes)
    interactive, bulk = _first(Priority.INTERACTIVE, lanes), _first(Priority.BULK, lanes)
    bulk_room, reserved = bulk_share - running_bulk, NOTHING
    if bulk is not None:
        awaited = _sum(_awaited(Priority.BULK, lanes, bulk_rows))
        share = bulk_share.most(_need(bulk))
        if running_bulk == NOTHING:
            bulk_room = share
        if interactive is not None and interactive.arrival < bulk.arrival:
            beside_bulk = whole - share.least(running_bulk + awaited)
            if not _need_beside_bulk(interactive, lanes).fits(beside_bulk):
                # They can't both have what they need: bulk comes next.
                bulk_room = NOTHING
        reserved = bulk_room.least(awaited).most(NOTHING)
    free = whole - running - Amount(len(joining) * lane.beam_size, 0)
    if priority is Priority.INTERACTIVE:
        free -= reserved
    earlier = _sum(_earlier(priority, lane, lanes, free.rows))
    if priority is Priority.INTERACTIVE:
        return Room(free=free - earlier, bulk=None)
    is_lone = running_bulk == NOTHING != bulk_room and earlier == NOTHING
    return Room(free=free - earlier, bulk=bulk_room - earlier, lone_bulk=is_lone)


def _need(ticket: Ticket) -> Amount:
    """The room that a sentence takes by itself."""
    return Amount(ticket.sentence.options.beam_size, padded_positions(ticket.length))


def _need_beside_bulk(ticket: Ticket, lanes: Collection[Lane]) -> Amount:
    """What it takes padded to the bulk that waits in its lane and joins next, as `joining.choose` has it."""
    beam_size = ticket.sentence.options.beam_size
    waiting = [lane.waiting.first(Priority.BULK) for lane in lanes if lane.beam_size == beam_size]
    longest = max([ticket.length, *(bulk.length for bulk in waiting if bulk is not None)])
    return Amount(beam_size, padded_positions(longest))


def _first(priority: Priority, lanes: Collection[Lane]) -> Ticket | None:
    """The one of a priority that is next in turn."""
    firsts = [head for lane in lanes for head in islice(lane.waiting.heads(priority), 1)]
    return min(firsts, key=lambda head: (head[0], head[1].arrival), default=(0, None))[1]


def _awaited(priority: Priority, lanes: Collection[Lane], rows: int) -> Iterator[Amount]:
    """What those of a priority need that wait, as far as so many rows hold them, and of each lane one."""
    for lane in lanes:
        yield from map(_need, islice(lane.waiting.in_turn(priority), max(1, rows // lane.beam_size)))


def _earlier(priority: Priority, lane: Lane, lanes: Collection[Lane], rows: int) -> Iterator[Amount]:
    """What those of a priority need that wait in other lanes and come before the first in this one.

    They are one of each other caller whose turn it has been for longer, and all of its own that came earlier.
    """
    if (next_in_turn := next(lane.waiting.heads(priority), None)) is None:
        return
    since, first = next_in_turn
    caller = first.sentence.caller
    for other in lanes:
        if other is not lane:
            own = takewhile(lambda t: t.arrival < first.arrival, other.waiting.of_caller(priority, caller))
            heads = other.waiting.heads(priority)
            others = (head for turn, head in heads if turn < since and head.sentence.caller != caller)
            yield from map(_need, islice(chain(others, own), max(1, rows // other.beam_size)))


def _sum(amounts: Iterable[Amount]) -> Amount:
    return sum(amounts, NOTHING)
