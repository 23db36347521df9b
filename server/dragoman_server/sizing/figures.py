"""What was measured of a bundle on this machine, in the terms that the arithmetic wants. Measures nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Length:
    """How long a sentence is."""

    source_tokens: int
    """Tokens of its source."""
    steps: int
    """Decoder steps until it has ended."""


Text = tuple[Length, ...]
"""The sentences of one text; none where nothing is translated."""


@dataclass(frozen=True, kw_only=True)
class EngineFigures:
    """What one engine's work takes on a core of its own, as `Costs` wants it, and what a load is made of."""

    texts: Sequence[Text]
    beam_size: int
    turn_rows: tuple[float, ...]
    """Rows of turns, ascending."""
    turn_seconds: tuple[float, ...]
    """What a turn of so many takes, all that goes with it but encodings."""
    encoding_seconds: float
    """What an encoding takes, however much is in it."""
    position_seconds: float
    """And each of its source positions, padding included."""

    def encoding(self, num_sentences: int, source_positions: int) -> float:
        """Seconds of a group encoded together."""
        return self.encoding_seconds + self.position_seconds * num_sentences * source_positions

    def regrouping(self, num_sentences: int, num_joining: int) -> float:
        """Nothing: the turns that were measured had their regroupings in them."""
        return 0.0

    def step(self, num_rows: int, source_positions: float) -> float:
        """Seconds of a turn; beyond the largest that was measured as much more as the last one's rows."""
        largest = self.turn_rows[-1]
        seconds = float(np.interp(num_rows, self.turn_rows, self.turn_seconds))
        return seconds * max(1.0, num_rows / largest)

    def slower(self, factor: float) -> Self:
        """The same where everything takes `factor` times as long."""
        return replace(
            self,
            turn_seconds=tuple(factor * seconds for seconds in self.turn_seconds),
            encoding_seconds=factor * self.encoding_seconds,
            position_seconds=factor * self.position_seconds,
        )


@dataclass(frozen=True, kw_only=True)
class ServerFigures:
    """What a real server of `num_engines` took besides its engines' work."""

    num_engines: int
    door_seconds: float
    """Processor seconds of its main process for a text: gRPC, cutting, tokenizing, joining."""
    lone_seconds: float
    """What a text takes where no other is there, as its caller sees it: the median."""
    memory_bytes: int
    """Of all its processes, while they were as busy as they get."""
    texts_per_second: float
    """What it translated then, beside the load's own generator."""
