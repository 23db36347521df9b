"""The running batch of one beam size and who waits for it.

Decides who joins, who leaves and who stands where; does nothing of it. Knows no clock, no arrays of a model.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import islice

import numpy as np

from dragoman_server.engine.decoder import IntArray
from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.ticket import Ticket

POSITION_MULTIPLE = 8
"""Batches are padded to multiples of so many source positions: few shapes, and few changes of shape."""
MIN_FREE_SHARE = 0.25
"""Share of a crowded lane that must be free before others join: a few are encoded as slowly as many."""
WINDOW = 4
"""Who joins is chosen among so many times the sentences that a lane holds."""
MAX_PASSES = 8
"""How often the sentence that waits longest may be passed over for one of a better length."""


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

    def __init__(self, beam_size: int, limits: EngineLimits) -> None:
        self.beam_size = beam_size
        self.waiting: dict[Ticket, None] = {}
        self._limits = limits
        self._capacity = limits.max_rows // beam_size
        self._joining: Sequence[Ticket] = ()
        self._places: list[Ticket | None] = []
        self._source_positions = 0
        self._passes = 0

    @property
    def running(self) -> list[Ticket]:
        """Who is being encoded or decoded."""
        return [*self._joining, *(ticket for ticket in self._places if ticket is not None)]

    @property
    def num_running(self) -> int:
        """How many are being encoded or decoded."""
        return len(self._joining) + len(self._places) - self._places.count(None)

    def remove(self, tickets: Set[Ticket]) -> set[Ticket]:
        """Takes tickets out, those that run at the next regrouping. Returns those that were there.

        A lane that nobody runs in any more forgets its places: it begins anew with an empty batch.
        """
        removed = {ticket for ticket in tickets if self.waiting.pop(ticket, ticket) is None}
        removed |= tickets & set(self._joining)
        self._joining = [ticket for ticket in self._joining if ticket not in tickets]
        for place, ticket in enumerate(self._places):
            if ticket is not None and ticket in tickets:
                removed.add(ticket)
                self._places[place] = None
        if not self.num_running:
            self._places, self._source_positions = [], 0
        return removed

    def admit(self) -> list[list[Ticket]]:
        """Lets waiting sentences in, as groups to encode together. `settle` must follow.

        Whoever waits longest goes first, unless there are more waiting than places: then those that fit the
        running lengths best, and who waits longest at the latest after MAX_PASSES times.
        """
        assert not self._joining, "admitted twice without settling"
        running = self.running
        room = self._capacity - len(running)
        crowded = len(self.waiting) > room
        if not self.waiting or room == 0:
            return []
        if running and (not self._limits.continuous or (crowded and room < MIN_FREE_SHARE * self._capacity)):
            return []
        head = next(iter(self.waiting))
        head_first = not running or not crowded or self._passes >= MAX_PASSES
        chosen = self._choose(running, room, head if head_first else None)
        for ticket in chosen:
            del self.waiting[ticket]
        self._passes = 0 if head in chosen else self._passes + 1
        self._joining = chosen
        return group_by_length(chosen)

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

    def _choose(self, running: Sequence[Ticket], room: int, first: Ticket | None) -> list[Ticket]:
        longest = max(map(_length, running), default=0)
        chosen: list[Ticket] = []
        if first is not None:
            if not self._fits(len(running) + 1, max(longest, _length(first))):
                return []
            chosen.append(first)
            longest = max(longest, _length(first))
        # Shorter ones cost the others nothing; of the longer ones the least long cost least.
        reach = self._positions(longest)
        window = islice(self.waiting, WINDOW * self._capacity)
        for ticket in sorted(window, key=lambda t: (_length(t) > reach, abs(_length(t) - reach))):
            if len(chosen) == room:
                break
            length = max(longest, _length(ticket))
            if ticket is not first and self._fits(len(running) + len(chosen) + 1, length):
                chosen.append(ticket)
                longest = length
        return chosen

    def _fits(self, num_sentences: int, longest: int) -> bool:
        return num_sentences * self._positions(longest) <= self._limits.max_source_positions

    def _positions(self, longest: int) -> int:
        """Padded positions for this longest sentence; a batch is trimmed only if a quarter is saved."""
        needed = padded(longest)
        worth_trimming = needed * 4 <= self._source_positions * 3
        return needed if needed > self._source_positions or worth_trimming else self._source_positions


def _length(ticket: Ticket) -> int:
    return len(ticket.sentence.source)
