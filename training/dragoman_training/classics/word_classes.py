"""Classes of words with the same adjacent words: the exchange algorithm (Kneser & Ney 1993; Och 1999).

Words move one by one to the class where the bigram model of classes makes the text likeliest: where the sum
of n log n over the bigrams of classes, less that over the classes on either side, is highest.

Shapes: V words and, as the last one, a sentence's edge, C classes and that of the edge, E distinct bigrams.
"""

import numpy as np
from numba import njit

from dragoman_training.alignment.bitext import Ids, Numbers, Offsets, Sentences

NUM_ROUNDS = 4
"""Rounds over all words; few words move in a later one."""
Adjacent = tuple[Offsets, Ids, Numbers]
"""Where each word's bigrams begin, and of each the other word and how often it is there."""


def learn_classes(sentences: Sentences, num_classes: int) -> Ids:
    """The class of each word, and behind them that of unknown words, which is the rarest word's. [V]"""
    num_words = sentences.num_words
    num_classes = max(1, min(num_classes, num_words))
    class_V = (np.arange(num_words + 1) % num_classes).astype(np.int32)
    class_V[num_words] = num_classes
    before_E, after_E, count_E = _bigrams(sentences)
    order = np.argsort(after_E, kind="stable")
    bounds = np.arange(num_words + 2)
    after = np.searchsorted(before_E, bounds), after_E, count_E
    before = np.searchsorted(after_E[order], bounds), before_E[order], count_E[order]
    _exchange(class_V, num_classes, after, before, NUM_ROUNDS)
    class_V[num_words] = class_V[num_words - 1] if num_words else 0
    return class_V


def _bigrams(sentences: Sentences) -> tuple[Ids, Ids, Numbers]:
    """The distinct ones, by the first word, and how often each is there."""
    edge = sentences.num_words
    text = np.insert(sentences.word_N.astype(np.int64), sentences.first_S[1:], edge)
    text = np.concatenate([[edge], text])
    key_E, count_E = np.unique(text[:-1] * (edge + 1) + text[1:], return_counts=True)
    before_E, after_E = np.divmod(key_E, edge + 1)
    return before_E.astype(np.int32), after_E.astype(np.int32), count_E.astype(np.float64)


@njit(cache=True, nogil=True)
def _term(number: float) -> float:
    return number * np.log(number) if number > 0 else 0.0


@njit(cache=True, nogil=True)
def _exchange(class_V: Ids, num_classes: int, after: Adjacent, before: Adjacent, num_rounds: int) -> None:
    """`class_V` in place; the edge keeps its own."""
    (after_first_V, after_E, after_count_E), (before_first_V, before_E, before_count_E) = after, before
    edge = len(class_V) - 1
    bigram_CC = np.zeros((num_classes + 1, num_classes + 1))
    for word in range(edge + 1):
        for place in range(after_first_V[word], after_first_V[word + 1]):
            bigram_CC[class_V[word], class_V[after_E[place]]] += after_count_E[place]
    # A word counts as often as it is followed, which is as often as it follows.
    size_C = bigram_CC.sum(axis=1)
    for _ in range(num_rounds):
        for word in range(edge):
            after_C, before_C = np.zeros(num_classes + 1), np.zeros(num_classes + 1)
            own, number = 0.0, 0.0
            for place in range(after_first_V[word], after_first_V[word + 1]):
                number += after_count_E[place]
                if after_E[place] == word:
                    own += after_count_E[place]
                else:
                    after_C[class_V[after_E[place]]] += after_count_E[place]
            for place in range(before_first_V[word], before_first_V[word + 1]):
                if before_E[place] != word:
                    before_C[class_V[before_E[place]]] += before_count_E[place]
            old = class_V[word]
            bigram_CC[old] -= after_C
            bigram_CC[:, old] -= before_C
            bigram_CC[old, old] -= own
            size_C[old] -= number
            best, top = old, -np.inf
            for new in range(num_classes):
                gain = 2 * (_term(size_C[new]) - _term(size_C[new] + number))
                for other in range(num_classes + 1):
                    if other == new:
                        continue
                    if after_C[other] > 0:
                        there = bigram_CC[new, other]
                        gain += _term(there + after_C[other]) - _term(there)
                    if before_C[other] > 0:
                        there = bigram_CC[other, new]
                        gain += _term(there + before_C[other]) - _term(there)
                there = bigram_CC[new, new]
                gain += _term(there + after_C[new] + before_C[new] + own) - _term(there)
                if gain > top + 1e-9:
                    best, top = new, gain
            class_V[word] = best
            bigram_CC[best] += after_C
            bigram_CC[:, best] += before_C
            bigram_CC[best, best] += own
            size_C[best] += number
