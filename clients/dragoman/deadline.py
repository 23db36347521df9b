"""The time that a call of several requests has left."""

import time


class Deadline:
    """A point in time that all requests of a call share."""

    def __init__(self, timeout_seconds: float | None) -> None:
        """Starts to count. None is no limit."""
        self._at = None if timeout_seconds is None else time.monotonic() + timeout_seconds

    def remaining_seconds(self) -> float | None:
        """Seconds left, never negative; None without a limit."""
        return None if self._at is None else max(0.0, self._at - time.monotonic())
