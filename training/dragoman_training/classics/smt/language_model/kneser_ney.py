"""Interpolated Kneser-Ney smoothing with three discounts (Chen & Goodman 1998, section 3).

Shapes: T nodes, one for each n-gram, S sentences.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Offsets, Sentences
from dragoman_training.classics.smt.language_model.model import LanguageModel, language_model
from dragoman_training.classics.smt.trie import ROOT, Trie, build_trie

Numbers = NDArray[np.float64]
DEFAULT_DISCOUNTS = (0.5, 1.0, 1.5)
"""Where a text is too small to tell them."""
MAX_ORDER = 10


def estimate(
    sentences: Sequence[Sequence[int]], num_words: int, *, order: int, min_counts: Sequence[int] = (1,)
) -> LanguageModel:
    """A model of the order from sentences of word numbers below `num_words`.

    N-grams of n words that occur less often than `min_counts[n - 1]` are pruned; the last number holds for
    all longer ones, too. Single words are never pruned. Raises ValueError for orders and numbers that make no
    model.
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
        own_T = length_T == length
        probability_T[own_T] = (
            own_share_T[own_T] + backoff_T[parent_T[own_T]] * probability_T[suffix_T[own_T]]
        )
    number_T = np.cumsum(kept_T) - 1
    return language_model(
        order,
        num_words,
        trie.select(kept_T),
        np.log(probability_T[kept_T]),
        np.log(np.maximum(backoff_T[kept_T], 1e-99)),
        number_T[suffix_T[kept_T]],
    )


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
    """Of each node its prefix, its suffix, how often it occurs and its length. [T] each"""
    suffix_T, count_T, length_T = (np.zeros(len(trie), np.int64) for _ in range(3))
    length_T[1 : trie.first_T[1]] = 1
    for length, node_N in enumerate(node_KN, 1):
        inside = node_N >= 0
        count_T += np.bincount(node_N[inside], minlength=len(trie))
        length_T[node_N[inside]] = length
        if length > 1:
            suffix_T[node_N[inside]] = node_KN[length - 2][inside]
    return trie.parent_T, suffix_T, count_T, length_T
