"""The tickets that wait in a lane: by priority a queue for each caller, who take turns.

Of each caller in turn comes one; a caller that comes is the last in turn. So before a sentence comes at most
one of each other caller, once those of its own are through.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice, takewhile

from dragoman_server.engine.request import Priority
from dragoman_server.engine.ticket import Ticket


@dataclass(kw_only=True)
class _Queue:
    """One caller's, in the order of arrival."""

    tickets: dict[Ticket, None] = field(default_factory=dict)
    served_at: int = -1
    """When one of the caller's joined last, on the clock of arrivals; nothing from before this queue."""


@dataclass(frozen=True)
class Window:
    """Tickets of one priority that may join a lane next, as they come in turn."""

    tickets: Sequence[Ticket]
    _by_reach: dict[int, list[Ticket]] = field(default_factory=dict)

    @cached_property
    def callers(self) -> Counter[str]:
        """How many are of each caller."""
        return Counter(ticket.sentence.caller for ticket in self.tickets)

    def by_reach(self, reach: int) -> Sequence[Ticket]:
        """Those within the reach first, the longest before others; then those beyond, the shortest first."""
        if reach not in self._by_reach:
            order = sorted(self.tickets, key=lambda one: (one.length > reach, abs(one.length - reach)))
            self._by_reach[reach] = order
        return self._by_reach[reach]


class Waiting:
    """Tickets by priority and caller; each leaves from wherever it stands at no cost."""

    def __init__(self) -> None:
        # The callers in turn.
        self._queues: dict[Priority, dict[str, _Queue]] = {priority: {} for priority in Priority}
        self._numbers = dict.fromkeys(Priority, 0)
        # Most turns change nothing here, and many look.
        self._windows: dict[tuple[Priority, int], Window] = {}

    def __len__(self) -> int:
        return sum(self._numbers.values())

    def __iter__(self) -> Iterator[Ticket]:
        return chain.from_iterable(map(self.in_turn, Priority))

    def number(self, priority: Priority) -> int:
        """How many there are of a priority."""
        return self._numbers[priority]

    def in_turn(self, priority: Priority) -> Iterator[Ticket]:
        """Those of one priority, as they come where only turns and arrivals count."""
        return _taking_turns([iter(queue.tickets) for queue in self._queues[priority].values()])

    def first(self, priority: Priority) -> Ticket | None:
        """The one of a priority that is next in turn."""
        return next(self.in_turn(priority), None)

    def heads(self, priority: Priority) -> Iterator[tuple[int, Ticket]]:
        """The first of each caller in turn, and since when that has been its turn."""
        for queue in self._queues[priority].values():
            head = next(iter(queue.tickets))
            yield max(queue.served_at, head.arrival), head

    def of_caller(self, priority: Priority, caller: str) -> Iterator[Ticket]:
        """A caller's, in the order of arrival."""
        queue = self._queues[priority].get(caller)
        return iter(queue.tickets if queue is not None else ())

    def window(self, priority: Priority, size: int) -> Window:
        """The first `size` in turn, of each caller none that came `size` tickets or more behind its first.

        Nobody moves up into a caller's part of it while its first one waits: fewer than `size` overtake it.
        """
        if (priority, size) not in self._windows:
            queues = self._queues[priority].values()
            within = [
                takewhile(lambda ticket, end=head.arrival + size: ticket.arrival < end, queue.tickets)  # type: ignore[misc]
                for queue, (_, head) in zip(queues, self.heads(priority), strict=True)
            ]
            self._windows[priority, size] = Window(list(islice(_taking_turns(within), size)))
        return self._windows[priority, size]

    def add(self, ticket: Ticket) -> None:
        """Puts it behind its caller's of its priority."""
        queues = self._queues[ticket.sentence.priority]
        queues.setdefault(ticket.sentence.caller, _Queue()).tickets[ticket] = None
        self._numbers[ticket.sentence.priority] += 1
        self._windows.clear()

    def put_back(self, tickets: Sequence[Ticket]) -> None:
        """Puts tickets before their callers' others of their priority."""
        for ticket in reversed(tickets):
            self.add(ticket)
            queue = self._queues[ticket.sentence.priority][ticket.sentence.caller]
            del queue.tickets[ticket]
            queue.tickets = {ticket: None} | queue.tickets

    def remove(self, ticket: Ticket) -> bool:
        """Takes it out; whether it was there."""
        queues, caller = self._queues[ticket.sentence.priority], ticket.sentence.caller
        if caller not in queues or ticket not in queues[caller].tickets:
            return False
        del queues[caller].tickets[ticket]
        if not queues[caller].tickets:
            del queues[caller]
        self._numbers[ticket.sentence.priority] -= 1
        self._windows.clear()
        return True

    def note_served(self, ticket: Ticket, now: int) -> None:
        """The ticket joined a lane, this one or another: its caller is the last in turn here, too."""
        queues = self._queues[ticket.sentence.priority]
        if (queue := queues.pop(ticket.sentence.caller, None)) is not None:
            queue.served_at = now
            queues[ticket.sentence.caller] = queue
            self._windows.clear()


def _taking_turns(queues: Sequence[Iterator[Ticket]]) -> Iterator[Ticket]:
    """One of each queue in every round."""
    while queues:
        left = []
        for queue in queues:
            if (ticket := next(queue, None)) is not None:
                yield ticket
                left.append(queue)
        queues = left
