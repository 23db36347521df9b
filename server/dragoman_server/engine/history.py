"""What the rows of a lane chose at every step, and the way back through it.

Shape suffixes: S sentences of the step, K beam, T source positions, U target tokens.
"""

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
    """The attention of the rows that went into the step: those that `parent_SK` names."""
    origin_S: IntArray | None
    """Each sentence's place one step earlier; None where all kept theirs. Beyond it for who was not there."""


class History:
    """Backpointers of all sentences of a lane. Sentences that join or leave cost nothing but an index."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._origin_S: IntArray | None = None

    def regroup(self, origin_S: IntArray) -> None:
        """The next step's sentences come from these places; a newcomer's place lies beyond the last."""
        assert self._origin_S is None, "regrouped twice without a step"
        self._origin_S = origin_S

    def append(self, token_SK: IntArray, parent_SK: IntArray, attention_SKT: FloatArray | None) -> None:
        """Records a step."""
        self._steps.append(_Step(token_SK, parent_SK, attention_SKT, self._origin_S))
        self._origin_S = None

    def forget(self, num_steps: int) -> None:
        """Drops all but the newest `num_steps`, the age of the oldest sentence."""
        del self._steps[: len(self._steps) - num_steps]

    def places(self, sentence: int, num_steps: int) -> list[int]:
        """Where the sentence at this place of the newest step stood in each of the last `num_steps`."""
        places = [sentence]
        for step in reversed(self._steps[len(self._steps) - num_steps + 1 :]):
            places.append(places[-1] if step.origin_S is None else int(step.origin_S[places[-1]]))
        return places[::-1]

    def tokens(self, places: list[int], row: int, num_tokens: int) -> tuple[list[int], list[int]]:
        """The first `num_tokens` tokens of the hypothesis that was in `row` after the last of them.

        Returns them with the row that each was chosen from, which is the row of its attention.
        """
        tokens, rows = [0] * num_tokens, [0] * num_tokens
        first = len(self._steps) - len(places)
        for age in range(num_tokens - 1, -1, -1):
            step, sentence = self._steps[first + age], places[age]
            tokens[age] = int(step.token_SK[sentence, row])
            row = rows[age] = int(step.parent_SK[sentence, row])
        return tokens, rows

    def attention(self, places: list[int], rows: list[int], num_positions: int) -> FloatArray:
        """[U, T]: the attention of each row in turn, from the sentence's first step on."""
        attention_UT = np.empty((len(rows), num_positions), np.float32)
        first = len(self._steps) - len(places)
        for age, row in enumerate(rows):
            attention_SKT = self._steps[first + age].attention_SKT
            assert attention_SKT is not None
            attention_UT[age] = attention_SKT[places[age], row, :num_positions]
        return attention_UT
