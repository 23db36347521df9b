"""Sentences that callers and an engine's thread share: new ones, those nobody waits for, those not ended.

The engine's thread empties it between its turns; all else of an engine belongs to that thread alone.
"""

import threading
from collections.abc import Sequence

from dragoman_server.engine.errors import EngineClosedError
from dragoman_server.engine.ticket import Ticket


class Inbox:
    """Its methods may be called from any thread, and only `wait` waits."""

    def __init__(self) -> None:
        self._arrived: list[Ticket] = []
        self._cancelled: list[Ticket] = []
        self._unended: set[Ticket] = set()
        self._is_woken = False
        self.is_closed = False
        """Whether it takes no more."""
        # Guards all of the above; notified when the engine's thread has something to look at.
        self._changed = threading.Condition()

    def submit(self, tickets: Sequence[Ticket]) -> None:
        """Puts tickets in, or none: raises EngineClosedError."""
        with self._changed:
            if self.is_closed:
                raise EngineClosedError("the engine is shutting down and takes no more sentences")
            self._arrived += tickets
            self._unended.update(tickets)
            self._changed.notify_all()

    def cancel(self, ticket: Ticket) -> None:
        """Nobody waits for it any more."""
        with self._changed:
            self._cancelled.append(ticket)
            self._changed.notify_all()

    def end(self, ticket: Ticket) -> bool:
        """It has ended; False where it had before."""
        with self._changed:
            was_there = ticket in self._unended
            self._unended.discard(ticket)
            return was_there

    def wake(self) -> None:
        """Ends a `wait`, or the next one."""
        with self._changed:
            self._is_woken = True
            self._changed.notify_all()

    def close(self) -> None:
        """Takes no more."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    def wait(self, timeout_seconds: float | None) -> bool:
        """Waits until something is there, or it is woken or closed; False where that takes longer."""
        with self._changed:
            has_come = self._changed.wait_for(
                lambda: bool(self._arrived or self._cancelled or self._is_woken or self.is_closed),
                timeout_seconds,
            )
            self._is_woken = False
            return has_come

    def empty(self) -> tuple[list[Ticket], list[Ticket]]:
        """Takes out who came, and of all who ever came whom nobody waits for any more."""
        with self._changed:
            found = self._arrived, self._cancelled
            self._arrived, self._cancelled = [], []
            return found

    def unended(self) -> list[Ticket]:
        """The tickets that came and have not ended."""
        with self._changed:
            return list(self._unended)
