"""What a lane has gone through: its sentences' ages, its rows' tokens, and the way back through these.

Shape suffixes: S sentences of the step, K beam, T source positions, U target tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman_server.engine.decoder import FloatArray, IntArray


class Ages:
    """The batch's step count, and the step at which each sentence joined: to advance all of them is O(1)."""

    def __init__(self) -> None:
        self.now = 0
        """Steps of the batch so far."""
        self._joined_at_S = np.empty(0, np.int64)

    @property
    def num_sentences(self) -> int:
        return len(self._joined_at_S)

    def regroup(self, origin_S: IntArray, num_joined: int) -> None:
        """Lets sentences leave and join; `origin_S` as in `Batch.regroup`."""
        if num_joined:
            self._joined_at_S = np.concatenate([self._joined_at_S, np.full(num_joined, self.now)])
        self._joined_at_S = self._joined_at_S.take(origin_S)

    def step(self) -> None:
        """Counts a step."""
        self.now += 1

    def age(self, place: int) -> int:
        """Steps that the sentence at this place has gone through."""
        return self.now - int(self._joined_at_S[place])

    def of(self, places_S: IntArray) -> list[int]:
        """Steps that the sentences at these places have gone through."""
        ages: list[int] = (self.now - self._joined_at_S.take(places_S)).tolist()
        return ages

    def oldest(self) -> int:
        """Steps that the oldest sentence has gone through; 0 where there is none."""
        return self.now - int(self._joined_at_S.min(initial=self.now))


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
