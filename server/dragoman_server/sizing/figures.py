"""Figures measured of a bundle on this machine, in the terms of the plan's arithmetic. Measures nothing."""

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
    """The cost of one engine's work on a core of its own, as `Costs` wants it, and the load's sizes."""

    texts: Sequence[Text]
    beam_size: int
    turn_rows: tuple[float, ...]
    """Rows of turns, ascending."""
    turn_seconds: tuple[float, ...]
    """Seconds of a turn with that many rows, all that goes with it but encodings."""
    encoding_seconds: float
    """Seconds of an encoding, whatever its size."""
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
        """These figures on a core that takes `factor` times as long."""
        return replace(
            self,
            turn_seconds=tuple(factor * seconds for seconds in self.turn_seconds),
            encoding_seconds=factor * self.encoding_seconds,
            position_seconds=factor * self.position_seconds,
        )


@dataclass(frozen=True, kw_only=True)
class ServerFigures:
    """The work of a real server of `num_engines` besides its engines'."""

    num_engines: int
    door_seconds: float
    """Processor seconds of its main process for a text: gRPC, cutting, tokenizing, joining."""
    lone_seconds: float
    """The median seconds that a caller waits for a text when no other text is there."""
    memory_bytes: int
    """The bytes of all its processes while they were as busy as they get."""
    texts_per_second: float
    """The texts a second that the server then translated, beside the load's own generator."""
