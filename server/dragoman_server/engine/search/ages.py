"""How many decoder steps each sentence of a batch has gone through.

Shape suffix: S sentences.
"""

import numpy as np

from dragoman_server.engine.decoder import IntArray


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
