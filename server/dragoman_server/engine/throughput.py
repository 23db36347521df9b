"""How fast a queue is worked off, learned from when it was: what is in it takes so long.

Pure: is told the time and what happened. Durations are in seconds, work in any unit.
"""

WINDOW_SECONDS = 0.5
"""Work is counted over so long."""
WEIGHT = 0.2
"""Weight of the newest window in the mean."""
MEMORY_SECONDS = 600.0
"""What was learned so long ago is forgotten: a mistake that keeps everybody out would never be noticed."""


class Throughput:
    """Work done per second while more was waiting: an empty queue tells nothing of what could be done."""

    def __init__(self) -> None:
        self._rate: float | None = None
        self._learned_at = 0.0
        self._began_at: float | None = None
        self._done = 0.0
        self._is_first = True

    def observe(self, now: float, work: float, *, is_saturated: bool) -> None:
        """So much work is done; whether more waits."""
        if not is_saturated:
            self._began_at = None
            return
        if self._began_at is None:
            # At first batches fill up, and little gets done.
            self._began_at, self._done, self._is_first = now, 0.0, True
            return
        self._done += work
        seconds = now - self._began_at
        if seconds < WINDOW_SECONDS:
            return
        if not self._is_first:
            newest = self._done / seconds
            self._rate = newest if self._rate is None else self._rate + WEIGHT * (newest - self._rate)
            self._learned_at = now
        self._began_at, self._done, self._is_first = now, 0.0, False

    def seconds(self, now: float, work: float) -> float:
        """What so much work takes; 0 as long as nothing is known."""
        if not self._rate or now - self._learned_at > MEMORY_SECONDS:
            return 0.0
        return work / self._rate
