"""An engine whose scheduler decides as ever, and whose work is added up instead of done. Knows no clock.

Costs are seconds of `models/de-en/1` in int8 on one core with AVX-512, beam 5. Real machines differ. What
counts is how much a row, a turn and an encoding cost beside each other.
"""

from collections.abc import Sequence

import numpy as np

from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.scheduling.scheduler import Scheduler, Turn
from dragoman_server.engine.ticket import Ticket

_BEAM_SIZE = 5
_SENTENCES = (1, 2, 4, 8, 16, 32, 48, 64)
_STEP = (0.000345, 0.000445, 0.000558, 0.000894, 0.0016, 0.0033, 0.0059, 0.008)
_HOST = 0.0003


def step(num_rows: int, source_positions: float) -> float:
    """A decoder step, and what the host does about it."""
    return (
        float(np.interp(num_rows / _BEAM_SIZE, _SENTENCES, _STEP)) * (0.88 + 0.0075 * source_positions)
        + _HOST
    )


def encoding(num_sentences: int, source_positions: int) -> float:
    """A group encoded together."""
    return 0.0004 + source_positions * (0.000055 + 0.000027 * num_sentences)


def regrouping(num_sentences: int, num_joining: int) -> float:
    """Sentences leave and join a running batch."""
    return 0.0002 + 0.000005 * num_sentences + 0.00003 * num_joining


class VirtualEngine:
    """An engine in virtual time: one turn after the other."""

    def __init__(self, limits: EngineLimits) -> None:
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
            seconds = encoding(len(group), max(ticket.length for ticket in group))
            for ticket in group:
                ticket.encoding_at = now
                self._steps_left[ticket] = self._steps[ticket]
            now += seconds
            self.scheduler.on_encode(seconds)
            self.num_encodings += 1
            self.num_encoded += len(group)
        moved = lane.settle(turn.groups)
        running = lane.running
        if moved is not None:
            now += regrouping(len(running), sum(map(len, turn.groups)))
        now += step(lane.num_rows, lane.num_positions / len(running))
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
