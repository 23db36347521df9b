"""The distinct pairs of words that stand together in a sentence pair, and the pair that every link is of.

The links of a sentence pair with l source and m target words are a matrix [m, l + 1]: by target word, and
within that by source position, NULL first. Word pairs are numbered by source word, and within that by target
word.

Shapes: S sentence pairs, N source words of the bitext, P distinct word pairs, L links, V source words and
NULL.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Bitext, Ids, Offsets, Sentences


@dataclass(frozen=True, eq=False, kw_only=True)
class Cooccurrence:
    """A bitext as its links."""

    pair_L: Ids
    first_S: Offsets
    """[S + 1]: the first link of each sentence pair, and the end."""
    source_size_S: Offsets
    target_size_S: Offsets
    first_V: Offsets
    """[V + 1]: the first pair of each source word, of NULL behind them, and the end."""
    target_P: Ids
    num_target_words: int

    @classmethod
    def of(cls, bitext: Bitext) -> "Cooccurrence":
        """Numbers the pairs of a bitext."""
        source, target = bitext.source, bitext.target
        size_S = (source.size_S + 1) * target.size_S
        first_S = np.concatenate([[0], np.cumsum(size_S)])
        place_N, first_V = _by_word(source)
        sentence_N = np.repeat(np.arange(len(bitext), dtype=np.int32), source.size_S)
        pair_L = np.empty(int(first_S[-1]), np.int32)
        arrays = (place_N, first_V, sentence_N, source.first_S, target.word_N, target.first_S, first_S)
        pairs_V = np.zeros(source.num_words + 2, np.int64)
        target_P = _number(*arrays, target.num_words, pairs_V, pair_L)
        return cls(
            pair_L=pair_L,
            first_S=first_S,
            source_size_S=source.size_S,
            target_size_S=target.size_S,
            first_V=pairs_V,
            target_P=target_P,
            num_target_words=target.num_words,
        )

    @property
    def source_P(self) -> Ids:
        """The source word of each pair; NULL is the number behind the last word's."""
        return np.repeat(np.arange(len(self.first_V) - 1, dtype=np.int32), np.diff(self.first_V))


def _by_word(side: Sentences) -> tuple[NDArray[np.int64], Offsets]:
    """The places of all words, sorted by word, and where each word's begin."""
    order = np.argsort(side.word_N, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(side.word_N, minlength=side.num_words))])
    return order, first


@njit(cache=True, nogil=True)
def _number(
    place_N: NDArray[np.int64],
    first_V: Offsets,
    sentence_N: Ids,
    source_first_S: Offsets,
    target_N: Ids,
    target_first_S: Offsets,
    first_S: Offsets,
    num_targets: int,
    pairs_V: Offsets,
    pair_L: Ids,
) -> Ids:
    """Fills `pairs_V` and `pair_L`; returns the target word of each pair.

    One source word after the other: its target words are stamped with it when they are first seen.
    """
    num_sources = len(first_V) - 1
    num_sentences = len(first_S) - 1
    stamp = np.full(num_targets, -1, np.int64)
    number = np.zeros(num_targets, np.int64)
    seen = np.empty(num_targets, np.int32)
    target_P = np.empty(1024, np.int32)
    total = 0
    for word in range(num_sources + 1):
        null = word == num_sources
        begin = 0 if null else first_V[word]
        end = num_sentences if null else first_V[word + 1]
        count = 0
        for place in range(begin, end):
            sentence = place if null else sentence_N[place_N[place]]
            for target in target_N[target_first_S[sentence] : target_first_S[sentence + 1]]:
                if stamp[target] != word:
                    stamp[target] = word
                    seen[count] = target
                    count += 1
        if total + count > len(target_P):
            larger = np.empty(max(total + count, 2 * len(target_P)), np.int32)
            larger[:total] = target_P[:total]
            target_P = larger
        target_P[total : total + count] = np.sort(seen[:count])
        for place in range(total, total + count):
            number[target_P[place]] = place
        for place in range(begin, end):
            sentence = place if null else sentence_N[place_N[place]]
            width = source_first_S[sentence + 1] - source_first_S[sentence] + 1
            link = first_S[sentence]
            if not null:
                link += place_N[place] - source_first_S[sentence] + 1
            for target in target_N[target_first_S[sentence] : target_first_S[sentence + 1]]:
                pair_L[link] = number[target]
                link += width
        total += count
        pairs_V[word + 1] = total
    return target_P[:total].copy()
