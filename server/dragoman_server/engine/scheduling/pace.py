"""How fast sentences are decoded, learned from those that were: whether one can still be answered in time.

Pure: is told what happened and what it took. Durations are in seconds.
"""

from collections.abc import Sequence

from dragoman_server.engine.request import Sentence
from dragoman_server.engine.scheduling.turn_cost import TurnCost

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

        Each of its tokens takes a turn of every lane; these have so many rows. Half: who might be lucky is
        not given up.
        """
        steps = min(self._output_ratio.value * len(sentence.source), sentence.options.max_output_tokens)
        return OPTIMISM * (
            self._encode_seconds.value + steps * sum(map(self._turn_cost.seconds, rows_of_turns))
        )
