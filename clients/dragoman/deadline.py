"""The time that a call of several requests has left."""

import time

LONGEST_SECONDS = 1e8
"""Some three years. gRPC takes timeouts that its clock can't hold for ones that have passed."""


def within_clock(timeout_seconds: float | None) -> float | None:
    """The timeout, or None, which is no limit, for one that nobody lives to see."""
    return None if timeout_seconds is None or timeout_seconds > LONGEST_SECONDS else timeout_seconds


class Deadline:
    """A point in time that all requests of a call share."""

    def __init__(self, timeout_seconds: float | None) -> None:
        """Starts to count. None is no limit."""
        limit = within_clock(timeout_seconds)
        self._at = None if limit is None else time.monotonic() + limit

    def remaining_seconds(self) -> float | None:
        """Seconds left, never negative; None without a limit."""
        return None if self._at is None else max(0.0, self._at - time.monotonic())
