"""The translations of a sentence's phrases, and what the rest of a sentence costs at best.

Shapes: J source words, O options of a sentence, W words of their targets.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Ids, Offsets
from dragoman_training.classics.smt.language_model.model import Automaton, LanguageModel, advance
from dragoman_training.classics.smt.phrases.table import PhraseTable
from dragoman_training.classics.smt.search.features import UNKNOWN_SCORE, Weights

Scores = NDArray[np.float64]
PASSED_THROUGH = -1


class Options(NamedTuple):
    """Ways to translate a part of a sentence, by first word, then by length, the best first."""

    first_J: Offsets
    """[J + 1]: where the options of each first word begin, and the end."""
    start_O: Offsets
    end_O: Offsets
    """The position behind the last source word."""
    pair_O: Offsets
    """Which pair of the phrase table, or `PASSED_THROUGH`."""
    score_O: Scores
    """Of all features that depend on the phrase alone."""
    bound_O: Scores
    """With the language model's estimate of all words but the first, which depends most on the context."""
    word_first_O: Offsets
    """[O + 1]"""
    word_W: Ids
    future_JJ: Scores
    """[J + 1, J + 1]: the best score of each part of the sentence, without distortion."""


def collect_options(
    table: PhraseTable,
    language_model: LanguageModel,
    weights: Weights,
    sentence: Sequence[int],
    max_options: int,
) -> Options:
    """Of each phrase of the sentence the best pairs, and words without any as they are."""
    tm = weights.vector()[:4]
    starts, ends, pairs = [], [], []
    for start in range(len(sentence)):
        spans = table.spans(sentence, start)
        if not spans or spans[0][0] > start + 1:
            spans.insert(0, (start + 1, PASSED_THROUGH, PASSED_THROUGH + 1))
        for end, first, behind in spans:
            starts += [start] * (behind - first)
            ends += [end] * (behind - first)
            pairs.append(np.arange(first, behind))
    start_O, end_O = np.array(starts, np.int64), np.array(ends, np.int64)
    pair_O = np.concatenate([np.zeros(0, np.int64), *pairs])
    known_O = pair_O >= 0
    # A word that is passed through is one unknown word.
    size_O = np.where(known_O, np.diff(table.target_first_P)[pair_O] if len(table) else 1, 1)
    word_first_O = np.concatenate([[0], np.cumsum(size_O)])
    word_W = np.full(int(word_first_O[-1]), language_model.unknown, np.int32)
    known_W = np.repeat(known_O, size_O)
    if len(table):
        offset_O = table.target_first_P[pair_O] - word_first_O[:-1]
        word_W[known_W] = table.target_W[(np.arange(len(word_W)) + np.repeat(offset_O, size_O))[known_W]]
        static_O = np.where(known_O, table.scores_P4[pair_O] @ tm, UNKNOWN_SCORE)
    else:
        static_O = np.full(len(pair_O), UNKNOWN_SCORE)
    score_O = static_O - weights.words * size_O - weights.phrases
    estimate_O, later_O = _estimate(language_model.automaton, word_first_O, word_W)
    likely_O = score_O + weights.language_model * estimate_O
    bound_O = score_O + max(weights.language_model, 0.0) * later_O
    order = np.lexsort((-likely_O, end_O, start_O))
    span_O = (start_O * (len(sentence) + 1) + end_O)[order]
    order = order[np.arange(len(order)) - np.searchsorted(span_O, span_O) < max_options]
    future_JJ = np.full((len(sentence) + 1, len(sentence) + 1), -np.inf)
    np.maximum.at(future_JJ, (start_O[order], end_O[order]), likely_O[order])
    _fill(future_JJ)
    size_O = size_O[order]
    first_O = np.concatenate([[0], np.cumsum(size_O)])
    place_W = np.arange(first_O[-1]) + np.repeat(word_first_O[:-1][order] - first_O[:-1], size_O)
    return Options(
        first_J=np.searchsorted(start_O[order], np.arange(len(sentence) + 1)),
        start_O=start_O[order],
        end_O=end_O[order],
        pair_O=pair_O[order],
        score_O=score_O[order],
        bound_O=bound_O[order],
        word_first_O=first_O,
        word_W=word_W[place_W],
        future_JJ=future_JJ,
    )


@njit(cache=True, nogil=True)
def _estimate(automaton: Automaton, word_first_O: Offsets, word_W: Ids) -> tuple[Scores, Scores]:
    """The log-probability of each target by itself, and of its words but the first."""
    whole_O, later_O = np.zeros(len(word_first_O) - 1), np.zeros(len(word_first_O) - 1)
    for option in range(len(whole_O)):
        state, first = 0, word_first_O[option]
        for place in range(first, word_first_O[option + 1]):
            log, state = advance(automaton, state, word_W[place])
            whole_O[option] += log
            if place > first:
                later_O[option] += log
    return whole_O, later_O


@njit(cache=True, nogil=True)
def _fill(future_JJ: Scores) -> None:
    """Parts made of two parts."""
    num_words = len(future_JJ) - 1
    for size in range(2, num_words + 1):
        for start in range(num_words - size + 1):
            for middle in range(start + 1, start + size):
                both = future_JJ[start, middle] + future_JJ[middle, start + size]
                if both > future_JJ[start, start + size]:
                    future_JJ[start, start + size] = both
