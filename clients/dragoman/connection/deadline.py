"""The time that a call of several requests has left, and how long it waits for a server that went away."""

import time
from collections.abc import Callable

from dragoman.arguments import check_number
from dragoman.errors import DragomanError, OverloadedError, UnavailableError

LONGEST_SECONDS = 1e8
"""About three years. gRPC treats a timeout that overflows its clock as already expired."""


def within_clock(timeout_seconds: float | None) -> float | None:
    """The timeout, or None (no limit) for one longer than LONGEST_SECONDS.

    Raises TypeError for what is no number, InvalidRequestError for nan.
    """
    if timeout_seconds is None:
        return None
    check_number(timeout_seconds, "timeout_seconds")
    return None if timeout_seconds > LONGEST_SECONDS else timeout_seconds


class Deadline:
    """A point in time that all requests of a call share."""

    def __init__(self, timeout_seconds: float | None) -> None:
        """Starts to count. None is no limit."""
        limit = within_clock(timeout_seconds)
        self._at = None if limit is None else time.monotonic() + limit

    def remaining_seconds(self) -> float | None:
        """Seconds left, never negative; None without a limit."""
        return None if self._at is None else max(0.0, self._at - time.monotonic())


class RetryBudget:
    """Ever longer waits, and an end of them, counted from the first failure after an answer."""

    def __init__(
        self,
        seconds: float,
        *,
        first_wait_seconds: float,
        max_wait_seconds: float,
        holds_waits: bool = True,
        last_answer: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`holds_waits`: whether a wait ends within the budget, too, rather than begins there. `last_answer`
        says when others were answered, on the clock of time.monotonic: the budget of all counts from then."""
        self._seconds = seconds
        self._first_wait_seconds = first_wait_seconds
        self._max_wait_seconds = max_wait_seconds
        self._holds_waits = holds_waits
        self._last_answer = last_answer
        self.renew()

    def renew(self) -> None:
        """The server has answered."""
        self._away_since: float | None = None
        self._wait_seconds = self._first_wait_seconds

    def wait_seconds(self, error: DragomanError, remaining_seconds: float | None = None) -> float | None:
        """Seconds before the next try; None where the budget is spent, or less time than that is left."""
        now = time.monotonic()
        self._away_since = now if self._away_since is None else self._away_since
        spent = now - max(self._away_since, self._last_answer())
        wait = self._wait_seconds
        if isinstance(error, OverloadedError | UnavailableError):
            wait = max(wait, error.retry_after_seconds or 0.0)
        self._wait_seconds = min(2 * self._wait_seconds, self._max_wait_seconds)
        is_spent = spent + wait > self._seconds if self._holds_waits else spent >= self._seconds
        is_late = remaining_seconds is not None and wait >= remaining_seconds
        return None if is_spent or is_late else wait
