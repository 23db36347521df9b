"""The running batch of one beam size and who waits for it.

Knows who joins, who leaves and who stands where; decides nothing of it. Knows no clock, no arrays of a model.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from dragoman_server.engine.decoder import IntArray, padded_positions, worth_trimming
from dragoman_server.engine.request import Priority
from dragoman_server.engine.scheduling.waiting import Waiting
from dragoman_server.engine.ticket import Ticket

_is_bulk = attrgetter("is_bulk")


@dataclass(frozen=True, kw_only=True)
class Regrouping:
    """The tickets and their places from now on."""

    origin_S: IntArray
    """The place that the sentence at each place came from; newcomers are numbered from the end of the old
    places on."""
    tickets: tuple[Ticket, ...]
    """The ticket at each place."""
    source_positions: int
    """Positions that every sentence is padded to."""
    begins_anew: bool
    """Whether the lane starts from an empty batch, because nobody of the previous one is left."""


class Lane:
    """Waiting, joining and running sentences of one beam size."""

    def __init__(self, beam_size: int, *, continuous: bool = True) -> None:
        """Unless `continuous`, a batch ends as a whole before the next begins."""
        self.beam_size = beam_size
        self.waiting = Waiting()
        self._continuous = continuous
        self.joining: Sequence[Ticket] = ()
        """The tickets that were let in and have no place yet."""
        self._places: list[Ticket | None] = []
        self._source_positions = 0

    @property
    def running(self) -> list[Ticket]:
        """The tickets that are being encoded or decoded."""
        return [*self.joining, *filter(None, self._places)]

    @property
    def num_running(self) -> int:
        """How many are being encoded or decoded."""
        return len(self.joining) + len(self._places) - self._places.count(None)

    @property
    def num_rows(self) -> int:
        """Rows that they take."""
        return self.num_running * self.beam_size

    @property
    def num_bulk(self) -> int:
        """How many of them are bulk."""
        return sum(map(_is_bulk, self.running))

    @property
    def is_urgent(self) -> bool:
        """Whether interactive ones wait or run."""
        return self.waiting.number(Priority.INTERACTIVE) > 0 or self.num_bulk < self.num_running

    @property
    def num_positions(self) -> int:
        """Source positions that they take, padding included."""
        return self.num_running * self._source_positions

    @property
    def num_bulk_rows(self) -> int:
        """Rows that bulk sentences take."""
        return self.num_bulk * self.beam_size

    @property
    def num_bulk_positions(self) -> int:
        """Source positions that bulk sentences take, padding included."""
        return self.num_bulk * self._source_positions

    def remove(self, tickets: Set[Ticket]) -> set[Ticket]:
        """Takes tickets out; one that runs leaves at the next regrouping. Returns the ones that were there.

        A lane that nobody runs in any more forgets its places: it begins anew with an empty batch.
        """
        removed = {ticket for ticket in tickets if self.waiting.remove(ticket)}
        removed |= tickets & set(self.joining)
        self.joining = [ticket for ticket in self.joining if ticket not in tickets]
        for place, ticket in enumerate(self._places):
            if ticket is not None and ticket in tickets:
                removed.add(ticket)
                self._places[place] = None
        if not self.num_running:
            self._places, self._source_positions = [], 0
        return removed

    def leaving(self, finished: Set[Ticket]) -> list[Ticket]:
        """The finished tickets that leave now: all or, with request-level batching (Yu et al. 2022, "Orca",
        section 3), none before every running one has finished.
        """
        if not finished or not (self._continuous or finished >= set(self.running)):
            return []
        return [ticket for ticket in self.running if ticket in finished]

    def join(self, tickets: Sequence[Ticket]) -> None:
        """Lets waiting tickets in. `settle` must follow."""
        assert not self.joining, "joined twice without settling"
        for ticket in tickets:
            self.waiting.remove(ticket)
        self.joining = list(tickets)

    def settle(self, groups: Sequence[Sequence[Ticket]]) -> Regrouping | None:
        """Gives the groups that were encoded their places; None where nobody left and nobody joined.

        A ticket that stays keeps its place; newcomers fill gaps, and the last ones where the batch shrinks.
        """
        # A ticket that was removed since its encoding is still among what was encoded, and gets no place.
        present = set(self.joining)
        newcomers = [ticket if ticket in present else None for group in groups for ticket in group]
        self.joining = ()
        if newcomers.count(None) == len(newcomers) and None not in self._places:
            return None
        begins_anew = not self._places
        pool = [*self._places, *newcomers]
        filled = [place for place, ticket in enumerate(pool) if ticket is not None]
        end = min(size := len(filled), len(self._places))
        others = iter([place for place in filled if place >= end])
        origin = [n if n < end and self._places[n] is not None else next(others) for n in range(size)]
        tickets = list(filter(None, map(pool.__getitem__, origin)))
        self._places = list(tickets)
        self._source_positions = self.positions_for(max((ticket.length for ticket in tickets), default=0))
        return Regrouping(
            origin_S=np.array(origin, np.int64),
            tickets=tuple(tickets),
            source_positions=self._source_positions,
            begins_anew=begins_anew,
        )

    def positions_for(self, longest: int) -> int:
        """Padded positions for this longest sentence: those there are where it is not worth trimming them."""
        needed, current = padded_positions(longest), self._source_positions
        return needed if needed > current or worth_trimming(needed, current) else current
