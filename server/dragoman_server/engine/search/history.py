"""The tokens that the rows of a lane chose at every step, and the way back through them.

Shape suffixes: S sentences of the step, K beam, T source positions, U target tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman_server.engine.decoder import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class _Step:
    token_SK: IntArray
    """The token that each row took on."""
    parent_SK: IntArray
    """The sentence's row that each row continues."""
    attention_SKT: FloatArray | None
    """The attention of the rows that went into the step, which `parent_SK` names."""
    origins: Sequence[int] | None
    """Each sentence's place one step earlier, beyond the batch for a newcomer; None where all kept theirs."""


class History:
    """Backpointers of all sentences of a lane. Sentences that join or leave cost nothing but an index."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._origins: Sequence[int] | None = None

    def regroup(self, origins: Sequence[int]) -> None:
        """The next step's sentences come from these places; a newcomer's place lies beyond the last."""
        assert self._origins is None, "regrouped twice without a step"
        self._origins = origins

    def append(self, token_SK: IntArray, parent_SK: IntArray, attention_SKT: FloatArray | None) -> None:
        """Records a step."""
        self._steps.append(_Step(token_SK, parent_SK, attention_SKT, self._origins))
        self._origins = None

    def forget(self, num_steps: int) -> None:
        """Drops all but the newest `num_steps`, the age of the oldest sentence."""
        del self._steps[: len(self._steps) - num_steps]

    def tokens(self, place: int, age: int, row: int, num_tokens: int) -> tuple[list[int], list[int]]:
        """The first `num_tokens` tokens of the hypothesis that was in `row` after the last of them.

        Its sentence stands at this place after the newest step, its `age`th. Returns the tokens with the
        row that each was chosen from, which is the row of its attention.
        """
        tokens, rows = [0] * num_tokens, [0] * num_tokens
        for number, step in zip(range(age - 1, -1, -1), reversed(self._steps), strict=False):
            if number < num_tokens:
                tokens[number] = step.token_SK.item(place, row)
                row = rows[number] = step.parent_SK.item(place, row)
            if step.origins is not None:
                place = step.origins[place]
        return tokens, rows

    def attention(self, place: int, age: int, rows: list[int], num_positions: int) -> FloatArray:
        """[U, T]: the attention of each row in turn, from the sentence's first step on."""
        attention_UT = np.empty((len(rows), num_positions), np.float32)
        for number, step in zip(range(age - 1, -1, -1), reversed(self._steps), strict=False):
            if number < len(rows):
                assert step.attention_SKT is not None
                attention_UT[number] = step.attention_SKT[place, rows[number], :num_positions]
            if step.origins is not None:
                place = step.origins[place]
        return attention_UT
