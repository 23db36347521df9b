"""How long a call waits for a server that went away. Decides, and waits for nothing itself."""

import time

from dragoman.errors import DragomanError, UnavailableError

FIRST_WAIT_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 2.0


class Patience:
    """Ever longer waits, and an end of them, counted from the first failure after an answer."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """The server has answered."""
        self._away_since: float | None = None
        self._wait_seconds = FIRST_WAIT_SECONDS

    def wait_seconds(self, error: DragomanError, remaining_seconds: float | None) -> float | None:
        """How long to wait before the next try; None where it would be too late."""
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
        wait = self._wait_seconds
        if isinstance(error, UnavailableError) and error.retry_after_seconds is not None:
            wait = max(wait, error.retry_after_seconds)
        self._wait_seconds = min(2 * self._wait_seconds, LONGEST_WAIT_SECONDS)
        is_spent = now + wait - self._away_since > self._seconds
        is_late = remaining_seconds is not None and wait >= remaining_seconds
        return None if is_spent or is_late else wait
