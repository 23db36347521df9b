"""How fast sentences are decoded, learned from those that were: whether one can still be answered in time.

Pure: is told what happened and what it took. Durations are in seconds.
"""

from dragoman_server.engine.request import Sentence

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
    """What an encoding takes, what a row of a turn takes, and how many tokens an answer has."""

    def __init__(self) -> None:
        self._encode_seconds = RecentLow()
        self._least_row_seconds = RecentLow()
        self._output_ratio = RunningMean()

    def on_encode(self, seconds: float) -> None:
        """A group of sentences was encoded."""
        self._encode_seconds.observe(seconds)

    def on_turn(self, num_rows: int, seconds: float) -> None:
        """So many rows advanced by one token, and who joined them was encoded."""
        self._least_row_seconds.observe(seconds / num_rows)

    def least_turn_seconds(self, num_rows: int) -> float:
        """What a turn of so many rows takes at best; 0 as long as nothing is known."""
        return num_rows * self._least_row_seconds.value

    def on_finish(self, *, source_tokens: int, steps: int) -> None:
        """A sentence was answered after so many steps."""
        self._output_ratio.observe(steps / source_tokens)

    def least_seconds(self, sentence: Sentence, *, seconds_per_token: float) -> float:
        """Half of what a sentence takes that begins now; 0 as long as nothing is known.

        Half: who might be lucky is not given up.
        """
        steps = min(self._output_ratio.value * len(sentence.source), sentence.options.max_output_tokens)
        return OPTIMISM * (self._encode_seconds.value + steps * seconds_per_token)
