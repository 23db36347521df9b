"""A scheduler that decides as ever, and notes what turns and encodings took and how long sentences were.

It counts the processor time of the engine's thread: what else the machine does says nothing of the model.
"""

import time
from collections.abc import Iterator
from concurrent.futures import Future

from dragoman_server.engine.limits import EngineLimits
from dragoman_server.engine.request import SentenceResult
from dragoman_server.engine.scheduling.lane import Lane
from dragoman_server.engine.scheduling.scheduler import Scheduler, Turn
from dragoman_server.engine.ticket import Ticket


class WatchingScheduler(Scheduler):
    """The engine's thread writes to it; others read once nothing runs."""

    def __init__(self, limits: EngineLimits) -> None:
        super().__init__(limits)
        self.turns: list[tuple[int, float]] = []
        """Rows and seconds of each turn, encodings left out."""
        self.encodings: list[tuple[int, float]] = []
        """Source positions, padding included, and seconds of each encoding."""
        self.steps: dict[Future[SentenceResult], int] = {}
        """Steps of each sentence that was answered."""
        self._began = self._encoded = 0.0
        self._num_rows = 0
        self._positions: Iterator[int] = iter(())

    def next_turn(self, now: float) -> Turn:
        """Ends the timing of the turn before, and begins the next."""
        ended = time.thread_time()
        if self._num_rows:
            # From one turn to the next, with all that is done between them.
            self.turns.append((self._num_rows, ended - self._began))
        turn = super().next_turn(now)
        self._num_rows = 0
        self._began, self._encoded = ended, time.thread_time()
        self._positions = iter([len(group) * max(ticket.length for ticket in group) for group in turn.groups])
        return turn

    def on_encode(self, seconds: float) -> None:
        """Notes an encoding."""
        super().on_encode(seconds)
        encoded = time.thread_time()
        self.encodings.append((next(self._positions), encoded - self._encoded))
        self._began += encoded - self._encoded
        self._encoded = encoded

    def on_turn(self, lane: Lane, seconds: float) -> None:
        """Notes the rows of a turn."""
        super().on_turn(lane, seconds)
        self._num_rows = lane.num_rows

    def on_finish(self, ticket: Ticket, steps: int) -> None:
        """Notes the steps of a sentence."""
        super().on_finish(ticket, steps)
        self.steps[ticket.future] = steps
