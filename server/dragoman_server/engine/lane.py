"""The running batch of one beam size and who waits for it.

Decides who joins, who leaves and who stands where; does nothing of it. Knows no clock, no arrays of a model.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import islice

import numpy as np

from dragoman_server.engine.decoder import IntArray
from dragoman_server.engine.request import Priority
from dragoman_server.engine.room import Room
from dragoman_server.engine.ticket import Ticket
from dragoman_server.engine.waiting import Waiting

POSITION_MULTIPLE = 8
"""Batches are padded to multiples of so many source positions: few shapes, and few changes of shape."""
MIN_FREE_SHARE = 0.25
"""Share of a crowded lane that must be free before others join: a few are encoded as slowly as many."""
WINDOW = 4
"""Who joins is chosen among so many times the sentences that a lane holds."""
MAX_PASSES = 8
"""How often who waits longest may be passed over: for one of a better length, or of a higher priority."""


@dataclass(frozen=True, kw_only=True)
class Regrouping:
    """Who stands where from now on."""

    origin_S: IntArray
    """For each place the place it came from; newcomers are numbered from the end of the old places on."""
    tickets: tuple[Ticket, ...]
    """Who stands at each place."""
    source_positions: int
    """Positions that every sentence is padded to."""


def padded(length: int) -> int:
    """Source positions that a batch has whose longest sentence has this length."""
    return -(-length // POSITION_MULTIPLE) * POSITION_MULTIPLE


def group_by_length(tickets: Sequence[Ticket]) -> list[list[Ticket]]:
    """Cuts tickets into groups to encode together, longest first, such that padding stays low.

    A group's shortest sentence is at least three quarters of its longest, or a few positions shorter.
    """
    groups: list[list[Ticket]] = []
    for ticket in sorted(tickets, key=lambda ticket: -_length(ticket)):
        longest = _length(groups[-1][0]) if groups else 0
        if groups and longest - _length(ticket) <= max(POSITION_MULTIPLE, longest // 4):
            groups[-1].append(ticket)
        else:
            groups.append([ticket])
    return groups


class Lane:
    """Waiting, joining and running sentences of one beam size."""

    def __init__(self, beam_size: int, *, continuous: bool = True) -> None:
        """Unless `continuous`, a batch ends before the next begins."""
        self.beam_size = beam_size
        self.waiting = Waiting()
        self._continuous = continuous
        self._joining: Sequence[Ticket] = ()
        self._places: list[Ticket | None] = []
        self._source_positions = 0
        self._passes = dict.fromkeys(Priority, 0)
        self._bulk_passes = 0

    @property
    def running(self) -> list[Ticket]:
        """Who is being encoded or decoded."""
        return [*self._joining, *(ticket for ticket in self._places if ticket is not None)]

    @property
    def joining(self) -> Sequence[Ticket]:
        """Who was let in and has no place yet."""
        return self._joining

    @property
    def num_running(self) -> int:
        """How many are being encoded or decoded."""
        return len(self._joining) + len(self._places) - self._places.count(None)

    @property
    def num_rows(self) -> int:
        """Rows that they take."""
        return self.num_running * self.beam_size

    @property
    def num_bulk_rows(self) -> int:
        """Rows that bulk sentences take."""
        return _count_bulk(self.running) * self.beam_size

    @property
    def num_positions(self) -> int:
        """Source positions that they take, padding included."""
        return self.num_running * self._source_positions

    def remove(self, tickets: Set[Ticket]) -> set[Ticket]:
        """Takes tickets out, those that run at the next regrouping. Returns those that were there.

        A lane that nobody runs in any more forgets its places: it begins anew with an empty batch.
        """
        removed = {ticket for ticket in tickets if self.waiting.remove(ticket)}
        removed |= tickets & set(self._joining)
        self._joining = [ticket for ticket in self._joining if ticket not in tickets]
        for place, ticket in enumerate(self._places):
            if ticket is not None and ticket in tickets:
                removed.add(ticket)
                self._places[place] = None
        if not self.num_running:
            self._places, self._source_positions = [], 0
        return removed

    def admit(self, room: Room) -> list[Ticket]:
        """Lets waiting sentences in and returns them. `settle` must follow.

        Interactive ones go first, and bulk ones at the latest after MAX_PASSES times. Among each, whoever
        waits longest goes first, unless there are more waiting than places: then those that fit the running
        lengths best, and who waits longest at the latest after MAX_PASSES times.
        """
        assert not self._joining, "admitted twice without settling"
        running = self.running
        if not self.waiting or (running and not self._continuous):
            return []
        hurry = self._bulk_passes >= MAX_PASSES
        interactive, bulk = Priority.INTERACTIVE, Priority.BULK
        chosen: list[Ticket] = []
        for priority in (bulk, interactive) if hurry else (interactive, bulk):
            chosen += self._choose(priority, running, chosen, room, hurry=hurry and priority is bulk)
        is_bulk_passed_over = chosen and self.waiting.queue(bulk) and not _count_bulk(chosen)
        self._bulk_passes = self._bulk_passes + 1 if is_bulk_passed_over else 0
        for ticket in chosen:
            self.waiting.remove(ticket)
        self._joining = chosen
        return chosen

    def settle(self, groups: Sequence[Sequence[Ticket]]) -> Regrouping | None:
        """Gives the groups that were encoded their places; None where nobody left and nobody joined.

        Whoever stays keeps its place; the gaps are filled by newcomers and, where the batch shrinks, by the
        last ones.
        """
        newcomers = [ticket for group in groups for ticket in group]
        self._joining = ()
        if not newcomers and None not in self._places:
            return None
        pool = [*self._places, *newcomers]
        present = [place for place, ticket in enumerate(pool) if ticket is not None]
        size = len(present)
        end = min(size, len(self._places))
        others = iter([place for place in present if place >= end])
        origin = [
            place if place < end and self._places[place] is not None else next(others)
            for place in range(size)
        ]
        tickets = [ticket for ticket in map(pool.__getitem__, origin) if ticket is not None]
        self._places = list(tickets)
        self._source_positions = self._positions(max(map(_length, tickets), default=0))
        return Regrouping(
            origin_S=np.array(origin, np.int64),
            tickets=tuple(tickets),
            source_positions=self._source_positions,
        )

    def _choose(
        self,
        priority: Priority,
        running: Sequence[Ticket],
        joining: Sequence[Ticket],
        room: Room,
        *,
        hurry: bool,
    ) -> list[Ticket]:
        """Whom of a priority to let in beside those; `hurry` lets them in one by one."""
        queue = self.waiting.queue(priority)
        present = [*running, *joining]
        capacity = room.rows // self.beam_size
        places = capacity - len(present)
        if priority is Priority.BULK:
            capacity = min(capacity, room.bulk_rows // self.beam_size)
            places = min(places, capacity - _count_bulk(present))
        crowded = len(queue) > places
        if not queue or places <= 0:
            return []
        if running and crowded and places < MIN_FREE_SHARE * capacity and not hurry:
            return []
        head = next(iter(queue))
        head_first = not present or not crowded or self._passes[priority] >= MAX_PASSES
        chosen = self._choose_by_length(
            list(islice(queue, WINDOW * capacity)), present, places, room, head if head_first else None
        )
        self._passes[priority] = 0 if head in chosen else self._passes[priority] + 1
        return chosen

    def _choose_by_length(
        self,
        window: Sequence[Ticket],
        present: Sequence[Ticket],
        places: int,
        room: Room,
        first: Ticket | None,
    ) -> list[Ticket]:
        longest = max(map(_length, present), default=0)

        def fits(num_sentences: int, longest: int) -> bool:
            return num_sentences * self._positions(longest) <= room.positions

        chosen: list[Ticket] = []
        if first is not None:
            if not fits(len(present) + 1, max(longest, _length(first))):
                return []
            chosen.append(first)
            longest = max(longest, _length(first))
        # Shorter ones cost the others nothing; of the longer ones the least long cost least.
        reach = self._positions(longest)
        for ticket in sorted(window, key=lambda t: (_length(t) > reach, abs(_length(t) - reach))):
            if len(chosen) == places:
                break
            length = max(longest, _length(ticket))
            if ticket is not first and fits(len(present) + len(chosen) + 1, length):
                chosen.append(ticket)
                longest = length
        return chosen

    def _positions(self, longest: int) -> int:
        """Padded positions for this longest sentence; a batch is trimmed only if a quarter is saved."""
        needed = padded(longest)
        worth_trimming = needed * 4 <= self._source_positions * 3
        return needed if needed > self._source_positions or worth_trimming else self._source_positions


def _length(ticket: Ticket) -> int:
    return len(ticket.sentence.source)


def _count_bulk(tickets: Sequence[Ticket]) -> int:
    return sum(ticket.sentence.priority is Priority.BULK for ticket in tickets)
