"""The time of a turn by how many rows it has: a line through recent turns.

Pure. Durations are in seconds.
"""

MEMORY = 256
"""Turns after which what was observed counts for less than half as much as what is new."""
MIN_TURNS = 32
"""Before so many a line is not trusted: a turn may take longer because somebody was encoded in it."""
MIN_SPREAD = 0.1
"""Where rows differ by less than this share of their mean, the last one is."""
MIN_SLOPE = 0.1
"""Least that a row adds, as a share of what a row takes on average: a line through noise may even fall."""
MAX_SURPRISE = 4.0
"""Times what was expected that a turn counts for at most: one stall of a machine says little of rows. After
one that is so many times as quick, what was known is forgotten: it came of a machine that stalled."""


class TurnCost:
    """A least-squares line whose observations count exponentially less as they age."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._num_turns = 0
        self._mean_rows = 0.0
        self._mean_seconds = 0.0
        self._variance = 0.0
        self._covariance = 0.0
        self._share_of_rows = 1.0

    def observe(self, num_rows: int, seconds: float) -> None:
        """A turn of so many rows took so long, with all that goes with it."""
        expected = self.seconds(num_rows)
        if self._num_turns >= MIN_TURNS:
            seconds = min(seconds, MAX_SURPRISE * expected)
        if seconds * MAX_SURPRISE < expected:
            self._forget()
        self._num_turns += 1
        weight = 1 / min(self._num_turns, MEMORY)
        more_rows, more_seconds = num_rows - self._mean_rows, seconds - self._mean_seconds
        self._mean_rows += weight * more_rows
        self._mean_seconds += weight * more_seconds
        self._variance = (1 - weight) * (self._variance + weight * more_rows**2)
        self._covariance = (1 - weight) * (self._covariance + weight * more_rows * more_seconds)
        if self._num_turns >= MIN_TURNS and self._variance > (MIN_SPREAD * self._mean_rows) ** 2:
            share = self._covariance / self._variance * self._mean_rows / self._mean_seconds
            self._share_of_rows = min(max(share, MIN_SLOPE), 1.0)

    def seconds(self, num_rows: int) -> float:
        """The time of a turn of so many rows; 0 as long as nothing is known."""
        if not self._num_turns:
            return 0.0
        fixed, per_row = self._line()
        return fixed + per_row * num_rows

    @property
    def row_seconds(self) -> float:
        """The time that a row adds to a turn; 0 as long as nothing is known."""
        return self._line()[1] if self._num_turns else 0.0

    def rows_beside(self, num_rows: int, slowdown: float, *, num_more_turns: int = 0) -> float:
        """How many rows more make a turn of `num_rows` take `slowdown` times as long.

        They may need turns of their own, so many, for which there is less room then. As if turns cost nothing
        but their rows, where turns have yet to tell how much they do, so that they are few.
        """
        fixed, per_row = self._line() if self._num_turns else (0.0, 1.0)
        return max(0.0, (slowdown - 1) * (fixed / per_row + num_rows) - num_more_turns * fixed / per_row)

    def _line(self) -> tuple[float, float]:
        """What a turn takes, and each of its rows on top of it."""
        per_row = self._share_of_rows * self._mean_seconds / self._mean_rows
        return (1 - self._share_of_rows) * self._mean_seconds, per_row
