"""The tickets that wait in a lane: a queue for each priority, in the order of arrival."""

from collections.abc import Iterator, Sequence, Set
from itertools import chain, takewhile

from dragoman_server.engine.request import Priority
from dragoman_server.engine.ticket import Ticket


class Waiting:
    """Tickets by priority; each leaves from wherever it stands at no cost."""

    def __init__(self) -> None:
        self._queues: dict[Priority, dict[Ticket, None]] = {priority: {} for priority in Priority}

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def __iter__(self) -> Iterator[Ticket]:
        return chain.from_iterable(self._queues.values())

    def queue(self, priority: Priority) -> Set[Ticket]:
        """Those of one priority, the longest waiting first."""
        return self._queues[priority].keys()

    def first(self, priority: Priority) -> Ticket | None:
        """The longest waiting one of a priority."""
        return next(iter(self._queues[priority]), None)

    def window(self, priority: Priority, size: int) -> list[Ticket]:
        """The longest waiting ticket of a priority, and those of the `size` behind it that still wait.

        Nobody moves up into a window while its first one waits: fewer than `size` overtake it.
        """
        queue = self._queues[priority]
        end = next(iter(queue)).arrival + size if queue else 0
        return list(takewhile(lambda ticket: ticket.arrival < end, queue))

    def add(self, ticket: Ticket) -> None:
        """Puts it behind those of its priority."""
        self._queues[ticket.sentence.priority][ticket] = None

    def put_back(self, tickets: Sequence[Ticket]) -> None:
        """Puts tickets, all of one priority, before those of it that wait."""
        priority = tickets[0].sentence.priority
        self._queues[priority] = dict.fromkeys(tickets) | self._queues[priority]

    def remove(self, ticket: Ticket) -> bool:
        """Takes it out; whether it was there."""
        return self._queues[ticket.sentence.priority].pop(ticket, ticket) is None
