"""An engine whose scheduler decides as ever, and whose work is added up instead of done. Knows no clock."""

from collections.abc import Sequence
from typing import Protocol

from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.scheduling.scheduler import Scheduler, Turn
from dragoman_server.engine.ticket import Ticket


class Costs(Protocol):
    """The cost of an engine's work, in seconds."""

    def encoding(self, num_sentences: int, source_positions: int) -> float:
        """A group encoded together, padded to so many positions."""
        ...

    def regrouping(self, num_sentences: int, num_joining: int) -> float:
        """Sentences leave and join a batch, which has so many then."""
        ...

    def step(self, num_rows: int, source_positions: float) -> float:
        """A decoder step of so many rows, each of so many positions, and what the host does about it."""
        ...


class VirtualEngine:
    """An engine in virtual time: one turn after the other."""

    def __init__(self, costs: Costs, limits: EngineLimits) -> None:
        self._costs = costs
        self._steps_left: dict[Ticket, int] = {}
        self._steps: dict[Ticket, int] = {}
        self.scheduler = Scheduler(limits)
        """Decides who is decoded when."""
        self.num_encodings = 0
        """Groups encoded."""
        self.num_encoded = 0
        """Sentences in them: those that were set back count again."""

    def add(self, tickets: Sequence[Ticket], steps: Sequence[int]) -> None:
        """Lets sentences wait; each ends after so many steps."""
        self._steps.update(zip(tickets, steps, strict=True))
        self.scheduler.add(tickets)

    @property
    def num_unfinished(self) -> int:
        """Sentences that wait or run."""
        return len(self._steps)

    def next_turn(self, now: float) -> Turn:
        """The engine's next turn; without a lane when there is nothing to do."""
        return self.scheduler.next_turn(now)

    def take(self, turn: Turn, now: float) -> tuple[float, list[Ticket]]:
        """When the turn ends, and who is finished then."""
        lane, began = turn.lane, now
        assert lane is not None
        for group in turn.groups:
            seconds = self._costs.encoding(len(group), max(ticket.length for ticket in group))
            for ticket in group:
                ticket.encoding_at = now
                self._steps_left[ticket] = self._steps[ticket]
            now += seconds
            self.scheduler.on_encode(seconds)
            self.num_encodings += 1
            self.num_encoded += len(group)
        regrouping = lane.settle(turn.groups)
        running = lane.running
        if regrouping is not None:
            now += self._costs.regrouping(len(running), sum(map(len, turn.groups)))
        now += self._costs.step(lane.num_rows, lane.num_positions / len(running))
        finished = []
        for ticket in running:
            self._steps_left[ticket] -= 1
            if not self._steps_left[ticket]:
                finished.append(ticket)
        self.scheduler.on_turn(lane, now - began)
        for ticket in finished:
            self.scheduler.on_finish(ticket, self._steps.pop(ticket))
            del self._steps_left[ticket]
        self.scheduler.remove(finished)
        return now, finished
