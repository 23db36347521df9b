"""How fast engines work, learned from what they got done: what waits for them takes so long.

Pure: is told the time and what happened. Durations are in seconds, work in any unit.
"""

from dragoman_server.engine.scheduling.pace import RunningMean

WINDOW_SECONDS = 0.5
"""Work is counted over so long at least."""
MIN_SHARE = 0.01
"""Engines that are emptier than that count as so full."""
MEMORY_SECONDS = 600.0
"""Age at which what was learned is forgotten: a mistake that keeps everybody out would never be noticed."""
MAX_EXTRAPOLATION = 20.0
"""No work is said to take more than so many times as long as was measured: half a second in which the machine
did something else says nothing of the next hour."""
ROWS_COST = 8.0
"""How many times as long as a turn's fixed part the rows of a full batch take. Some 10 on a CPU, less on a
GPU, where too little is then expected until something has waited."""


def full_gain(share: float) -> float:
    """How many times as much full engines do as engines that are full to a `share`.

    A turn takes 1 + ROWS_COST * share, in units of its fixed part, and gets as much done as it has rows.
    """
    return (1 + ROWS_COST * share) / (1 + ROWS_COST) / share


class _Rate(RunningMean):
    """Work per second, and for how many seconds it was measured."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def measure(self, rate: float, seconds: float, *, windows: float = 1.0) -> None:
        """Takes in what was done in so many seconds, which count as so many windows."""
        self.observe(rate, windows)
        self.seconds += seconds


class Throughput:
    """What full engines do per second.

    Measured while some work waits. Before that has happened it is told by what engines that are partly full
    do: more when full, but never as many times more as they could hold (`full_gain`).
    """

    def __init__(self) -> None:
        self._full = _Rate()
        self._partly_full = _Rate()
        self._learned_at = 0.0
        self._began_at: float | None = None
        self._done = 0.0
        self._shares = RunningMean()
        self._is_saturated = True
        self._is_first = True

    def observe(self, now: float, work: float, *, running: float, share: float, is_saturated: bool) -> None:
        """So much work is done, and so much is `running`. Engines are full to a `share`; more may wait."""
        if not share:
            # Until something comes nothing can be done.
            self._began_at = None
            return
        if self._began_at is None:
            # While batches fill up little gets done.
            self._begin(now, is_first=True)
            return
        self._done += work
        self._is_saturated &= is_saturated
        self._shares.observe(max(share, MIN_SHARE))
        seconds = now - self._began_at
        # Sentences that joined together end together, and nothing does before: a batch is counted as a whole.
        if seconds < WINDOW_SECONDS or self._done < running:
            return
        if not self._is_first:
            rate = self._done / seconds
            if self._is_saturated:
                if not self._is_recent(now):
                    self._full = _Rate()
                self._full.measure(rate, seconds, windows=seconds / WINDOW_SECONDS)
                self._learned_at = now
            else:
                self._partly_full.measure(rate * full_gain(self._shares.value), seconds)
        self._begin(now, is_first=False)

    def seconds(self, now: float, work: float) -> float:
        """What so much work takes, as far as known (`MAX_EXTRAPOLATION`); 0 as long as nothing is."""
        rate = self._full if self._full.value and self._is_recent(now) else self._partly_full
        return min(work / rate.value, MAX_EXTRAPOLATION * rate.seconds) if rate.value else 0.0

    def _is_recent(self, now: float) -> bool:
        return now - self._learned_at <= MEMORY_SECONDS

    def _begin(self, now: float, *, is_first: bool) -> None:
        self._began_at, self._done, self._is_first = now, 0.0, is_first
        self._shares = RunningMean()
        self._is_saturated = True
