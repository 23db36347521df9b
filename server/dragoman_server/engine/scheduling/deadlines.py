"""Whose deadline passes when."""

import heapq
import weakref
from collections.abc import Callable, Set
from itertools import count

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
        if ticket.sentence.deadline is not None:
            entry = (ticket.sentence.deadline, next(self._serial), weakref.ref(ticket))
            heapq.heappush(self._entries, entry)

    def pop_passed(self, now: float) -> list[Ticket]:
        """Takes out tickets whose deadline has passed, some of which may have ended otherwise."""
        passed: list[Ticket] = []
        while self._entries and self._entries[0][0] <= now:
            ticket = heapq.heappop(self._entries)[2]()
            if ticket is not None:
                passed.append(ticket)
        return passed

    def forget_ended(self, num_there: int, there: Callable[[], Set[Ticket]]) -> None:
        """Keeps the heap from outgrowing the tickets that are still `there`, of which there are so many."""
        if len(self._entries) > 2 * num_there + MANY_ENDED:
            present = there()
            self._entries = [entry for entry in self._entries if entry[2]() in present]
            heapq.heapify(self._entries)
