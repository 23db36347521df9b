"""Sequences of words as the nodes of a tree: a node's children are the sequences that are one word longer.

Shapes: N words of a corpus, S sentences, T nodes, K lengths.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Ids, Offsets, Sentences

ROOT = 0
"""The node of the empty sequence."""
ABSENT = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class Trie:
    """Nodes by length, then by prefix, then by last word. The node of the single word w is w + 1."""

    word_T: Ids
    """The last word of each node; -1 at the root."""
    first_T: Offsets
    """[T + 1]: where each node's children begin, and the end."""

    def __len__(self) -> int:
        return len(self.word_T)

    @property
    def parent_T(self) -> Offsets:
        """Each node's prefix; the root is its own."""
        parents = np.repeat(np.arange(len(self)), np.diff(self.first_T))
        return np.concatenate([[ROOT], parents])

    def select(self, kept_T: NDArray[np.bool_]) -> "Trie":
        """Only some nodes, renumbered. With a node its prefix is kept, and every single word is."""
        before = np.concatenate([[0], np.cumsum(kept_T)])
        first_T = before[self.first_T]
        return Trie(word_T=self.word_T[kept_T], first_T=np.append(first_T[:-1][kept_T], first_T[-1]))


def build_trie(sentences: Sentences, longest: int) -> tuple[Trie, list[Offsets]]:
    """All sequences of up to `longest` words, and the nodes of those that end at each word, by length.

    The second is K arrays [N]; `ABSENT` where the sentence has fewer words up to there.
    """
    word_N, num_words = sentences.word_N.astype(np.int64), sentences.num_words
    position_N = np.arange(len(word_N)) - np.repeat(sentences.first_S[:-1], sentences.size_S)
    levels = [np.array([-1]), np.arange(num_words)]
    firsts = [np.array([1])]
    node_KN = [word_N + 1]
    offset = 1
    for length in range(2, longest + 1):
        inside = np.flatnonzero(position_N >= length - 1)
        key = node_KN[-1][inside - 1] * num_words + word_N[inside]
        distinct, number = np.unique(key, return_inverse=True)
        parents = np.arange(offset, offset + len(levels[-1]))
        offset += len(levels[-1])
        firsts.append(offset + np.searchsorted(distinct, parents * num_words))
        levels.append(distinct % num_words)
        node_N = np.full(len(word_N), ABSENT, np.int64)
        node_N[inside] = offset + number
        node_KN.append(node_N)
    word_T = np.concatenate(levels).astype(np.int32)
    childless = np.full(len(levels[-1]) + 1, len(word_T), np.int64)
    first_T = np.concatenate([*firsts, childless])
    return Trie(word_T=word_T, first_T=first_T.astype(np.int64)), node_KN


@njit(cache=True, nogil=True)
def find_child(word_T: Ids, first_T: Offsets, node: int, word: int) -> int:
    """The node one word longer, or `ABSENT`."""
    if node == ROOT:
        return word + 1 if word + 1 < first_T[1] else ABSENT
    low, end = first_T[node], first_T[node + 1]
    high = end
    while low < high:
        middle = (low + high) // 2
        if word_T[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low if low < end and word_T[low] == word else ABSENT
