"""What sentences of the target language look like, P(e) by n-grams: Kneser-Ney smoothing, as an automaton.

N-grams are nodes of a tree: a node's children are the sequences that are one word longer. The states of the
automaton are the contexts that tell anything of the next word.

Shapes: T nodes, one for each n-gram, N words of a corpus, S sentences, K lengths.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.bitext import Ids, Numbers, Offsets, Sentences

ROOT = 0
"""The node of the empty sequence."""
ABSENT = -1
DEFAULT_DISCOUNTS = (0.5, 1.0, 1.5)
"""Discounts where a text is too small to tell them."""
MAX_ORDER = 10


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
        """Keeps some nodes, renumbered. With a node its prefix is kept, and every single word is."""
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
    first_T = np.concatenate([*firsts, np.full(len(levels[-1]) + 1, len(word_T))])
    return Trie(word_T=word_T, first_T=first_T.astype(np.int64)), node_KN


@njit(cache=True, nogil=True)
def find_child(word_T: Ids, first_T: Offsets, node: int, word: int) -> int:
    """The node one word longer, or `ABSENT`."""
    if node == ROOT:
        return word + 1 if word + 1 < first_T[1] else ABSENT
    first, end = first_T[node], first_T[node + 1]
    place = first + np.searchsorted(word_T[first:end], word)
    return place if place < end and word_T[place] == word else ABSENT


class LanguageModel(NamedTuple):
    """An interpolated model in the form of one with back-off, as the search reads it."""

    order: int
    num_words: int
    """Words of the vocabulary. Behind them are the unknown word, the sentence's end and its beginning."""
    word_T: Ids
    first_T: Offsets
    log_probability_T: Numbers
    """The log-probability of the last word of the n-gram, given those before it."""
    log_backoff_T: Numbers
    """Added where the n-gram is a context that the next word was not seen in."""
    suffix_T: Offsets
    """The n-gram without its first word."""
    state_T: Offsets
    """The longest end of the n-gram that is the context of any."""

    @classmethod
    def of(
        cls, order: int, num_words: int, trie: Trie, log_T: Numbers, log_backoff_T: Numbers, suffix_T: Offsets
    ) -> "LanguageModel":
        """Adds to the n-grams the states that they lead to."""
        state_T = _find_states(np.diff(trie.first_T) > 0, suffix_T)
        return cls(order, num_words, trie.word_T, trie.first_T, log_T, log_backoff_T, suffix_T, state_T)

    def log_probability(self, sentence: Ids) -> float:
        """The log-probability of a sentence and its end."""
        return float(_sentence(self, sentence))

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "shape": np.array([self.order, self.num_words]),
            "word": self.word_T,
            "first": self.first_T,
            "log_probability": self.log_probability_T.astype(np.float32),
            "log_backoff": self.log_backoff_T.astype(np.float32),
            "suffix": self.suffix_T,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "LanguageModel":
        order, num_words = arrays["shape"].tolist()
        log_T, log_backoff_T = (arrays[name].astype(float) for name in ("log_probability", "log_backoff"))
        trie = Trie(word_T=arrays["word"], first_T=arrays["first"])
        return cls.of(order, num_words, trie, log_T, log_backoff_T, arrays["suffix"])


@njit(cache=True, nogil=True)
def _find_states(useful_T: NDArray[np.bool_], suffix_T: Offsets) -> Offsets:
    state_T = np.arange(len(useful_T))
    # A node's suffix comes before it.
    for node in range(1, len(state_T)):
        if not useful_T[node]:
            state_T[node] = state_T[suffix_T[node]]
    return state_T


@njit(cache=True, nogil=True)
def advance(model: LanguageModel, state: int, word: int) -> tuple[float, int]:
    """The log-probability of a word in a state, and the state behind it."""
    log = 0.0
    node = state
    while True:
        child = find_child(model.word_T, model.first_T, node, word)
        if child >= 0:
            return log + model.log_probability_T[child], model.state_T[child]
        assert node != ROOT
        log += model.log_backoff_T[node]
        node = model.suffix_T[node]


@njit(cache=True, nogil=True)
def _sentence(model: LanguageModel, sentence: Ids) -> float:
    total, state = 0.0, model.state_T[model.num_words + 3]
    for word in sentence:
        log, state = advance(model, state, word)
        total += log
    log, state = advance(model, state, model.num_words + 1)
    return total + log


def estimate(
    sentences: Sequence[Sequence[int]], num_words: int, *, order: int, min_counts: Sequence[int] = (1,)
) -> LanguageModel:
    """A model of the order from sentences of word numbers below `num_words`.

    N-grams of n words that occur less often than `min_counts[n - 1]` are pruned; the last number holds for
    longer ones, too. Single words are never pruned. Raises ValueError for orders and numbers of no model.
    """
    if not 1 <= order <= MAX_ORDER:
        raise ValueError(f"a language model of order {order}: it is from 1 to {MAX_ORDER}")
    thresholds = [*min_counts, *[min_counts[-1]] * order][:order]
    if thresholds != sorted(thresholds) or thresholds[0] < 1:
        raise ValueError(
            f"n-grams are kept from {', '.join(map(str, thresholds))} times on: no number may be below 1, or "
            "below that of shorter n-grams"
        )
    begin, end = num_words + 2, num_words + 1
    framed = Sentences.of([[begin, *sentence, end] for sentence in sentences], num_words + 3)
    trie, node_KN = build_trie(framed, order)
    parent_T, suffix_T, count_T, length_T = _survey(trie, node_KN)
    begins_T = np.zeros(len(trie), bool)
    begins_T[begin + 1] = True
    adjusted_T = count_T.astype(np.float64)
    for length in range(1, order + 1):
        own_T = length_T == length
        if length > 1:
            begins_T[own_T] = begins_T[parent_T[own_T]]
        if length < order:
            # How many words it was seen behind; nothing stands before a sentence.
            longer = suffix_T[length_T == length + 1]
            inner_T = own_T & ~begins_T
            adjusted_T[inner_T] = np.bincount(longer, minlength=len(trie))[inner_T]
    adjusted_T[begin + 1] = 0  # Never predicted.
    total_T = np.bincount(parent_T[1:], adjusted_T[1:], minlength=len(trie))
    kept_T = count_T >= np.array([1, *thresholds])[length_T]
    kept_T[length_T <= 1] = True
    own_share_T = np.zeros(len(trie))
    for length in range(1, order + 1):
        own_T = (length_T == length) & kept_T & (adjusted_T > 0)
        discount = np.array([0.0, *discounts(adjusted_T[length_T == length])])
        count = adjusted_T[own_T]
        own_share_T[own_T] = (count - discount[np.minimum(count, 3).astype(int)]) / total_T[parent_T[own_T]]
    backoff_T = 1 - np.bincount(parent_T[1:], own_share_T[1:], minlength=len(trie))
    probability_T = np.ones(len(trie))
    single_T = length_T == 1
    probability_T[single_T] = own_share_T[single_T] + backoff_T[ROOT] / (num_words + 2)
    probability_T[begin + 1] = 1e-99
    for length in range(2, order + 1):
        at_T = length_T == length
        probability_T[at_T] = own_share_T[at_T] + backoff_T[parent_T[at_T]] * probability_T[suffix_T[at_T]]
    number_T = np.cumsum(kept_T) - 1
    logs = np.log(probability_T[kept_T]), np.log(np.maximum(backoff_T[kept_T], 1e-99))
    return LanguageModel.of(order, num_words, trie.select(kept_T), *logs, number_T[suffix_T[kept_T]])


def discounts(counts: Numbers) -> tuple[float, float, float]:
    """What n-grams that were seen once, twice and more often lose (Chen & Goodman 1998, eq. 26)."""
    n1, n2, n3, n4 = (int((counts == number).sum()) for number in (1, 2, 3, 4))
    if not (n1 and n2 and n3):
        return DEFAULT_DISCOUNTS
    y = n1 / (n1 + 2 * n2)
    found = 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3
    fits = all(0 <= discount <= number for number, discount in enumerate(found, 1))
    return found if fits else DEFAULT_DISCOUNTS


def _survey(trie: Trie, node_KN: list[Offsets]) -> tuple[Offsets, Offsets, Offsets, Offsets]:
    """The prefix, suffix, number of occurrences and length of each node. [T] each"""
    suffix_T, count_T, length_T = (np.zeros(len(trie), np.int64) for _ in range(3))
    length_T[1 : trie.first_T[1]] = 1
    for length, node_N in enumerate(node_KN, 1):
        inside = node_N >= 0
        count_T += np.bincount(node_N[inside], minlength=len(trie))
        length_T[node_N[inside]] = length
        if length > 1:
            suffix_T[node_N[inside]] = node_KN[length - 2][inside]
    return trie.parent_T, suffix_T, count_T, length_T
