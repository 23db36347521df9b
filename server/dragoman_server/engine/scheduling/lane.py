"""The running batch of one beam size and who waits for it.

Decides who joins, who leaves and who stands where; does nothing of it. Knows no clock, no arrays of a model.
"""

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from dragoman_server.engine.decoder import IntArray
from dragoman_server.engine.request import Priority
from dragoman_server.engine.scheduling.padding import padded_positions, worth_trimming
from dragoman_server.engine.scheduling.room import Room
from dragoman_server.engine.scheduling.waiting import Waiting
from dragoman_server.engine.ticket import Ticket

FREE_SHARE = 0.75
"""Share of a lane's places that must be free before anyone joins who was left waiting: to encode a few takes
about as long as to encode many, and who joins with others of one length ends with them, ..."""
LEAST_FREE_SHARE = 0.25
"""... or this share, ..."""
PATIENCE = 16
"""... after so many steps with it: those who run may run for long."""
GATHER_SHARE = 0.25
"""While fewer than this share of the running batch wait, they wait for more, for the same reason, ..."""
MAX_GATHERING = 3
"""... but for at most so many steps."""
WINDOW = 4
"""Those who join are chosen by their lengths from the WINDOW * (sentences that a lane holds) that came with
who waits longest: so many overtake it at most."""
MAX_PASSES = 8
"""How often bulk is passed over for interactive ones."""


@dataclass(frozen=True, kw_only=True)
class Regrouping:
    """Who stands where from now on."""

    origin_S: IntArray
    """For each place the place it came from; newcomers are numbered from the end of the old places on."""
    tickets: tuple[Ticket, ...]
    """Who stands at each place."""
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
        self._joining: Sequence[Ticket] = ()
        self._places: list[Ticket | None] = []
        self._source_positions = 0
        self._num_gathering = 0
        self._num_held = 0
        # Priorities of which some were left waiting when others joined.
        self._crowds: Collection[Priority] = ()

    @property
    def running(self) -> list[Ticket]:
        """Who is being encoded or decoded."""
        return [*self._joining, *filter(None, self._places)]

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
    def num_bulk(self) -> int:
        """How many of them are bulk."""
        return _count_bulk(self.running)

    @property
    def is_urgent(self) -> bool:
        """Whether interactive ones wait or run."""
        return bool(self.waiting.queue(Priority.INTERACTIVE)) or self.num_bulk < self.num_running

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

    def set_back(self, tickets: Sequence[Ticket]) -> None:
        """Returns running tickets, all of one priority, to the head of its queue; they begin anew."""
        self.remove(frozenset(tickets))
        self.waiting.put_back(tickets)

    def leaving(self, finished: Set[Ticket]) -> list[Ticket]:
        """The finished tickets that leave now: all or, with request-level batching (Yu et al. 2022, "Orca",
        section 3), none before every running one has finished.
        """
        if not finished:
            return []
        running = self.running
        if not self._continuous and not finished >= set(running):
            return []
        return [ticket for ticket in running if ticket in finished]

    def admit(self, room: Room, *, bulk_first: bool = False) -> list[Ticket]:
        """Lets waiting sentences in and returns them. `settle` must follow.

        Few beside a large batch gather for some steps first: each encoding holds everybody up.

        Bulk ones join once no interactive one is left waiting, or go first with `bulk_first`. Who waits
        longest of a priority goes before the others of it, unless there are more waiting than places: then
        those of its window (`Waiting.window`) that fit the running lengths best. Whoever is alone in it and
        does not fit holds everybody back until enough others have left.
        """
        assert not self._joining, "admitted twice without settling"
        if not self.waiting:
            self._crowds = ()
            return []
        running = self.running
        bulk_first = bulk_first and self.may_take_bulk(room)
        if running and not self._continuous:
            return []
        if running and self._is_held(running, room, bulk_first):
            return []
        if self._is_gathering() and not bulk_first:
            return []
        if bulk_first:
            chosen = self._choose(Priority.BULK, running, room)
            if chosen:
                chosen += self._choose(Priority.INTERACTIVE, [*running, *chosen], room)
        else:
            chosen = self._choose(Priority.INTERACTIVE, running, room)
            if len(chosen) == len(self.waiting.queue(Priority.INTERACTIVE)):
                chosen += self._choose(Priority.BULK, [*running, *chosen], room)
        for ticket in chosen:
            self.waiting.remove(ticket)
        self._joining = chosen
        if chosen:
            self._num_held = 0
        self._crowds = [priority for priority in Priority if self.waiting.queue(priority)]
        return chosen

    def may_take_bulk(self, room: Room) -> bool:
        """Whether bulk's share holds who of bulk waits longest, even if there is no place at the moment."""
        head = next(iter(self.waiting.queue(Priority.BULK)), None)
        if head is None:
            return False
        running = self.running
        positions = self._positions(max(ticket.length for ticket in [*running, head]))
        return room.holds_bulk(_count_bulk(running) + 1, rows=self.beam_size, positions=positions)

    def settle(self, groups: Sequence[Sequence[Ticket]]) -> Regrouping | None:
        """Gives the groups that were encoded their places; None where nobody left and nobody joined.

        Whoever stays keeps its place; the gaps are filled by newcomers and, where the batch shrinks, by the
        last ones.
        """
        # Who was removed since its encoding is still among what was encoded, and gets no place.
        present = set(self._joining)
        newcomers = [ticket if ticket in present else None for group in groups for ticket in group]
        self._joining = ()
        if newcomers.count(None) == len(newcomers) and None not in self._places:
            return None
        begins_anew = not self._places
        pool = [*self._places, *newcomers]
        filled = [place for place, ticket in enumerate(pool) if ticket is not None]
        size = len(filled)
        end = min(size, len(self._places))
        others = iter([place for place in filled if place >= end])
        origin = [
            place if place < end and self._places[place] is not None else next(others)
            for place in range(size)
        ]
        tickets = list(filter(None, map(pool.__getitem__, origin)))
        self._places = list(tickets)
        self._source_positions = self._positions(max((ticket.length for ticket in tickets), default=0))
        return Regrouping(
            origin_S=np.array(origin, np.int64),
            tickets=tuple(tickets),
            source_positions=self._source_positions,
            begins_anew=begins_anew,
        )

    def _is_gathering(self) -> bool:
        """Whether those who wait had better wait for others; counts how often they did."""
        few = 0 < len(self.waiting) < GATHER_SHARE * self.num_running
        self._num_gathering = self._num_gathering + 1 if few and self._num_gathering < MAX_GATHERING else 0
        return self._num_gathering > 0

    def _is_held(self, running: Sequence[Ticket], room: Room, bulk_first: bool) -> bool:
        """Whether those who were left waiting had better wait until more places are free."""
        lasting: Sequence[Ticket] = ()
        if self.waiting.queue(Priority.INTERACTIVE):
            crowd = Priority.INTERACTIVE
            # They don't wait for bulk, which may not have their share of the rows.
            lasting = [ticket for ticket in running if ticket.is_bulk]
        elif bulk_first:
            return False
        else:
            crowd = Priority.BULK
        free, places = self._num_free(crowd, running, room), self._num_free(crowd, lasting, room)
        # Other lanes wait for overdue bulk to have joined this one.
        enough = (LEAST_FREE_SHARE if bulk_first else FREE_SHARE) * places
        if crowd not in self._crowds or free >= min(len(self.waiting.queue(crowd)), enough):
            return False
        if free < LEAST_FREE_SHARE * places:
            return True
        self._num_held += 1
        return self._num_held <= PATIENCE

    def _num_free(self, priority: Priority, present: Sequence[Ticket], room: Room) -> int:
        """How many more of a priority the rows hold beside those who are present."""
        places = room.rows // self.beam_size - len(present)
        if priority is Priority.INTERACTIVE:
            return places
        bulk_rows = max(room.bulk_rows, self.beam_size) if room.lone_bulk else room.bulk_rows
        return min(places, bulk_rows // self.beam_size - _count_bulk(present))

    def _choose(self, priority: Priority, present: Sequence[Ticket], room: Room) -> list[Ticket]:
        """The waiting tickets of a priority to admit beside those who are present."""
        queue = self.waiting.queue(priority)
        places = self._num_free(priority, present, room)
        if not queue or places <= 0:
            return []
        head = next(iter(queue))
        window = self.waiting.window(priority, WINDOW * max(1, room.rows // self.beam_size))
        head_first = not present or len(window) <= places
        return self._choose_by_length(priority, window, present, places, room, head if head_first else None)

    def _choose_by_length(
        self,
        priority: Priority,
        window: Sequence[Ticket],
        present: Sequence[Ticket],
        places: int,
        room: Room,
        first: Ticket | None,
    ) -> list[Ticket]:
        """Those of a window, all of one priority, that fit; nobody if the `first` does not."""
        num_bulk = _count_bulk(present)

        def fit(num_chosen: int, longest: int) -> bool:
            rows, positions = self.beam_size, self._positions(longest)
            if not room.holds(len(present) + num_chosen, rows=rows, positions=positions):
                return False
            is_bulk = priority is Priority.BULK
            return not is_bulk or room.holds_bulk(num_bulk + num_chosen, rows=rows, positions=positions)

        longest = max((ticket.length for ticket in present), default=0)
        chosen: list[Ticket] = []
        if first is not None:
            longest = max(longest, first.length)
            if not fit(1, longest):
                return []
            chosen.append(first)
        # Shorter ones cost the others nothing; of the longer ones the least long cost least.
        reach = self._positions(longest)
        for ticket in sorted(window, key=lambda t: (t.length > reach, abs(t.length - reach))):
            if ticket is first:
                continue
            longest = max(longest, ticket.length)
            if len(chosen) == places or not fit(len(chosen) + 1, longest):
                break
            chosen.append(ticket)
        return chosen

    def _positions(self, longest: int) -> int:
        """Padded positions for this longest sentence: those there are where it is not worth trimming them."""
        needed, current = padded_positions(longest), self._source_positions
        return needed if needed > current or worth_trimming(needed, current) else current


_is_bulk = attrgetter("is_bulk")


def _count_bulk(tickets: Sequence[Ticket]) -> int:
    return sum(map(_is_bulk, tickets))
