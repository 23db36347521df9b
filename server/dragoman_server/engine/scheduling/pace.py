"""How fast sentences are decoded, learned from those that were: by turn, by sentence, by engines together.

It says whether a sentence can still be answered in time, and how long what waits takes. Pure: is told the
time, what happened and what it took. Durations are in seconds, work in any unit.
"""

from collections.abc import Sequence

from dragoman_server.engine.request import Sentence

MEMORY_TURNS = 256
"""Turns after which what was observed counts for less than half as much as what is new."""
MIN_TURNS = 32
"""The number of turns before which a line is not trusted: a turn may take longer because somebody was encoded
in it."""
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
        self._num_turns, self._share_of_rows = 0, 1.0
        self._mean_rows = self._mean_seconds = self._variance = self._covariance = 0.0

    def observe(self, num_rows: int, seconds: float) -> None:
        """A turn of so many rows took so long, with all that goes with it."""
        expected = self.seconds(num_rows)
        if self._num_turns >= MIN_TURNS:
            seconds = min(seconds, MAX_SURPRISE * expected)
        if seconds * MAX_SURPRISE < expected:
            self._forget()
        self._num_turns += 1
        weight = 1 / min(self._num_turns, MEMORY_TURNS)
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
        fixed, per_row = self._line()
        return fixed + per_row * num_rows

    @property
    def row_seconds(self) -> float:
        """The time that a row adds to a turn; 0 as long as nothing is known."""
        return self._line()[1]

    def rows_beside(self, num_rows: int, slowdown: float, *, num_more_turns: int = 0) -> float:
        """How many rows more make a turn of `num_rows` take `slowdown` times as long.

        They may need turns of their own, so many, for which there is less room then. As if turns cost nothing
        but their rows, where turns have yet to tell how much they do, so that they are few.
        """
        fixed, per_row = self._line() if self._num_turns else (0.0, 1.0)
        return max(0.0, (slowdown - 1) * (fixed / per_row + num_rows) - num_more_turns * fixed / per_row)

    def _line(self) -> tuple[float, float]:
        """What a turn takes, and each of its rows on top of it; 0 as long as nothing is known."""
        per_row = self._share_of_rows * self._mean_seconds / (self._mean_rows or 1.0)
        return (1 - self._share_of_rows) * self._mean_seconds, per_row


WEIGHT = 0.1
"""Weight of the newest observation in a running mean."""
OPTIMISM = 0.5
"""Share of the expected time below which an answer in time is given up."""


class RunningMean:
    """An exponentially weighted mean; 0 until something was observed."""

    def __init__(self) -> None:
        self.value = 0.0
        self._is_new = True

    def observe(self, value: float, times: float = 1.0) -> None:
        """Takes a value in that was there so many times."""
        weight = 1 - (1 - WEIGHT) ** times
        self.value = value if self._is_new else self.value + weight * (value - self.value)
        self._is_new = False


class RecentLow(RunningMean):
    """A running mean that falls at once: one slow moment, such as the first, is forgotten with the next."""

    def observe(self, value: float, times: float = 1.0) -> None:
        """Takes a value in that was there so many times."""
        super().observe(value, times)
        self.value = min(self.value, value)


class Pace:
    """What an encoding takes, and how many tokens an answer has; what a turn takes is `TurnCost`'s."""

    def __init__(self, turn_cost: TurnCost) -> None:
        self._turn_cost = turn_cost
        self._encode_seconds = RecentLow()
        self._output_ratio = RunningMean()

    def on_encode(self, seconds: float) -> None:
        """A group of sentences was encoded."""
        self._encode_seconds.observe(seconds)

    def on_finish(self, *, source_tokens: int, steps: int) -> None:
        """A sentence was answered after so many steps."""
        self._output_ratio.observe(steps / source_tokens)

    def least_seconds(self, sentence: Sentence, rows_of_turns: Sequence[int]) -> float:
        """Half of what a sentence takes that begins now; 0 as long as nothing is known.

        Each of its tokens takes a turn of every lane; these have so many rows. Half leaves room for luck.
        """
        steps = min(self._output_ratio.value * len(sentence.source), sentence.options.max_output_tokens)
        turns = sum(map(self._turn_cost.seconds, rows_of_turns))
        return OPTIMISM * (self._encode_seconds.value + steps * turns)


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
