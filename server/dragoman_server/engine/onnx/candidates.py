"""The target tokens that the sentences of a batch may be translated with, as memory for a shortlist's graphs.

Owns whose candidates stand where. Knows the shortlist's tensors, and of the graphs nothing else.

Shape suffixes: S sentences, K beam, C candidates of a sentence.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from dragoman_bundle.shortlist import PADDING, Shortlist

from dragoman_server.engine.decoder import IntArray, padded_candidates, worth_trimming
from dragoman_server.engine.onnx.tensors import Array, Memory, Moves

CANDIDATE = "memory.candidate"

Gather = Callable[[IntArray], Mapping[str, Array]]
"""Runs the graph "shortlist": candidates [S, C], PADDING behind a sentence's own -> its memory."""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """The candidates of sentences that were encoded together."""

    memory: Mapping[str, Array]
    num_candidates_S: IntArray


class CandidateChooser:
    """Looks up the candidates of sentences."""

    def __init__(self, shortlist: Shortlist, gather: Gather) -> None:
        self._shortlist = shortlist
        self.gather = gather

    def choose(self, sources: Sequence[Sequence[int]]) -> Offer:
        """The tokens that each sentence may be translated with, whatever its neighbours."""
        candidates = self._shortlist.candidates(sources)
        num_candidates_S = np.array([len(own) for own in candidates], np.int64)
        width = padded_candidates(int(num_candidates_S.max()))
        candidates_SC = np.full((len(sources), width), PADDING, np.int64)
        candidates_SC[np.arange(width) < num_candidates_S[:, None]] = np.concatenate(candidates)
        return Offer(memory=self.gather(candidates_SC), num_candidates_S=num_candidates_S)


class BatchCandidates:
    """The candidates of a running batch."""

    def __init__(self, chooser: CandidateChooser, axes: Mapping[str, int]) -> None:
        """`axes` has for each tensor the axis of length C."""
        self._chooser = chooser
        self._buffers = {name: Memory(axis) for name, axis in axes.items()}
        self._num_S = np.empty(0, np.int64)
        self._width = 0

    @property
    def arrays(self) -> dict[str, Array]:
        """The memory, by name."""
        return {name: buffer.array for name, buffer in self._buffers.items()}

    @property
    def ids(self) -> IntArray:
        """The candidates [S, C], PADDING behind a sentence's own."""
        own_SC = np.arange(self._width) < self._num_S[:, None]
        return np.where(own_SC, self._buffers[CANDIDATE].array, PADDING)

    def regroup(self, moves: Moves, joined: Sequence[Offer]) -> None:
        """Moves sentences as `Batch.regroup` does."""
        pool = np.concatenate([self._num_S, *(offer.num_candidates_S for offer in joined)])
        self._num_S = pool[moves.origin_S]
        needed = padded_candidates(int(self._num_S.max(initial=0)))
        if needed > self._width or worth_trimming(needed, self._width):
            self._width = needed
        for name, buffer in self._buffers.items():
            buffer.regroup(moves, [offer.memory[name] for offer in joined], self._width)

    def find(self, token_SK: IntArray) -> tuple[IntArray, bool]:
        """Where tokens stand among their sentences' candidates, and whether any had to become one; 0 is none.

        A target prefix may ask for any token, which is its sentence's candidate from then on.
        """
        place_SK = np.zeros_like(token_SK)
        has_changed = False
        # Rows that follow a prefix are few.
        for s, k in np.argwhere(token_SK).tolist():
            own = self._buffers[CANDIDATE].array[s, : self._num_S[s]]
            found = np.flatnonzero(own == token_SK[s, k])
            if not len(found):
                self._add(s, int(token_SK[s, k]))
                has_changed = True
            place_SK[s, k] = found[0] if len(found) else self._num_S[s] - 1
        return place_SK, has_changed

    def _add(self, s: int, token: int) -> None:
        place = int(self._num_S[s])
        self._num_S[s] += 1
        if place == self._width:
            everybody_S = np.arange(len(self._num_S))
            self.regroup(Moves(everybody_S, len(everybody_S), []), [])
        memory = self._chooser.gather(np.array([[token]], np.int64))
        for name, buffer in self._buffers.items():
            buffer.array[s, ..., place] = memory[name][0, ..., 0]
