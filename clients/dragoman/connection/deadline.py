"""The time that a call of several requests has left."""

import time

from dragoman.arguments import check_number

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
