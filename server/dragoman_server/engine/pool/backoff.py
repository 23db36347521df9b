"""How long to wait before an engine that ended is started anew. Pure: is told the time, in seconds."""

RESET_SECONDS = 60.0
"""An engine that lived for so long owes nothing to those before it."""
MAX_SECONDS = 30.0
"""Longest wait."""


class Backoff:
    """No wait for the first start, then one second, and twice as long each time as the time before."""

    def __init__(self) -> None:
        self._num_starts = 0
        self._started_at = 0.0

    def started(self, now: float) -> None:
        """An engine decodes from now on."""
        self._started_at = now

    def delay(self, now: float) -> float:
        """One ended, or did not start; the seconds until the next start."""
        if self._started_at and now - self._started_at >= RESET_SECONDS:
            self._num_starts = 0
        self._started_at = 0.0
        self._num_starts += 1
        return 0.0 if self._num_starts == 1 else min(MAX_SECONDS, 2.0 ** (self._num_starts - 2))
