"""Hill climbing in the space of alignments (Brown et al. 1993, section 4.3; Och & Ney 2003, section 3.3).

Neighbours differ by one word that moves to another source word, or by two that swap theirs. Counts are
collected over the best alignment found and its neighbours; where a pair has few alignments, over all.

Shapes: U target words and N source words of the bitext, S sentence pairs, L links, Q places of model 3.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Ids, Offsets
from dragoman_training.alignment.lexicon import Numbers
from dragoman_training.alignment.models.fertility_walk import Counts, Parameters, SentencePair, walk
from dragoman_training.alignment.models.model import Posteriors

LEAST = 1e-4
"""Neighbours less likely than the best by this factor count nothing."""
LOG_UNLIKELY = -10.0
"""A word is not moved to one that its lexicon makes less likely than its likeliest by exp of this."""


@njit(cache=True, nogil=True)
def collect(
    parameters: Parameters,
    counts: Counts,
    lexicon_P: Numbers,
    log_place_Q: Numbers,
    first_place_S: Offsets,
    pair_L: Ids,
    first_S: Offsets,
    source_size_S: Offsets,
    target_size_S: Offsets,
    source_N: Ids,
    source_class_N: Ids,
    target_class_U: Ids,
    alignment_U: Ids,
    climb: bool,
    max_alignments: int,
    max_words: int,
    posterior_L: Posteriors,
) -> float:
    """From the alignments given, in place, to better ones; posteriors and counts. Returns the log-likelihood.

    Without `climb` the alignments given are all that is counted. Sentences beyond `max_words` and those with
    nothing to choose from are left as they are, and count nothing.
    """
    log_likelihood = 0.0
    first_n, first_u = 0, 0
    for sentence in range(len(first_S) - 1):
        m, width = target_size_S[sentence], source_size_S[sentence] + 1
        links = slice(first_S[sentence], first_S[sentence + 1])
        words_u, words_n = slice(first_u, first_u + m), slice(first_n, first_n + width - 1)
        first_u += m
        first_n += width - 1
        alignment = alignment_U[words_u]
        if m == 0 or width == 1 or m > max_words or width > max_words + 1:
            posterior_L[links] = 0
            for j in range(m):
                posterior_L[first_S[sentence] + j * width + alignment[j]] = 1
            continue
        log_lexicon = np.empty((m, width))
        for link in range(links.start, links.stop):
            place = link - links.start
            log_lexicon[place // width, place % width] = np.log(max(lexicon_P[pair_L[link]], 1e-300))
        log_place = log_lexicon
        if parameters.model == 3:
            first_place = first_place_S[sentence]
            log_place = log_place_Q[first_place : first_place + m * width].reshape(m, width)
        pair = SentencePair(
            log_lexicon, log_place, source_N[words_n], source_class_N[words_n], target_class_U[words_u]
        )
        link_count = np.zeros((m, width))
        if not climb:
            _limit_null(alignment)
            walk(parameters, pair, alignment, counts, link_count, 1.0)
        elif float(width) ** m <= max_alignments:
            log_likelihood += _count_all(parameters, counts, pair, alignment, link_count)
        else:
            _limit_null(alignment)
            best = walk(parameters, pair, alignment, counts, link_count, 0.0)
            best = _climb(parameters, counts, pair, alignment, link_count, best)
            log_likelihood += _count_neighbours(parameters, counts, pair, alignment, link_count, best)
        posterior_L[links] = link_count.reshape(-1).astype(np.float32)
    return log_likelihood


@njit(cache=True, nogil=True)
def _limit_null(alignment: Ids) -> None:
    """No more words of NULL than of others, which the models need: the rest goes to the first source word."""
    silent = 0
    for j in range(len(alignment)):
        if alignment[j] == 0:
            silent += 1
            if 2 * silent > len(alignment):
                alignment[j] = 1


@njit(cache=True, nogil=True)
def _open_moves(log_lexicon: Numbers) -> NDArray[np.bool_]:
    """Which source words each target word may move to. [m, l + 1]"""
    result = np.empty(log_lexicon.shape, np.bool_)
    for j in range(len(log_lexicon)):
        least = log_lexicon[j].max() + LOG_UNLIKELY
        for i in range(log_lexicon.shape[1]):
            result[j, i] = log_lexicon[j, i] >= least
    return result


@njit(cache=True, nogil=True)
def _climb(
    parameters: Parameters,
    counts: Counts,
    pair: SentencePair,
    alignment: Ids,
    link_count: Numbers,
    best: float,
) -> float:
    """To the best neighbour, again and again until there is no better one."""
    m, width = link_count.shape
    open_to = _open_moves(pair.log_lexicon)
    while True:
        move_word, move_to, swap_with, top = -1, 0, -1, best + 1e-9
        for j in range(m):
            old = alignment[j]
            for i in range(width):
                if i != old and open_to[j, i]:
                    alignment[j] = i
                    value = walk(parameters, pair, alignment, counts, link_count, 0.0)
                    if value > top:
                        move_word, move_to, swap_with, top = j, i, -1, value
            alignment[j] = old
            for k in range(j + 1, m):
                if alignment[k] != old and open_to[j, alignment[k]] and open_to[k, old]:
                    alignment[j], alignment[k] = alignment[k], old
                    value = walk(parameters, pair, alignment, counts, link_count, 0.0)
                    if value > top:
                        move_word, swap_with, top = j, k, value
                    alignment[j], alignment[k] = old, alignment[j]
        if move_word < 0:
            return best
        best = top
        if swap_with >= 0:
            moved = alignment[move_word]
            alignment[move_word], alignment[swap_with] = alignment[swap_with], moved
        else:
            alignment[move_word] = move_to


@njit(cache=True, nogil=True)
def _count_neighbours(
    parameters: Parameters,
    counts: Counts,
    pair: SentencePair,
    alignment: Ids,
    link_count: Numbers,
    best: float,
) -> float:
    """Twice over the neighbours: for their sum, and for their shares."""
    m, width = link_count.shape
    open_to = _open_moves(pair.log_lexicon)
    total = 1.0
    values = np.empty(m * (width + m))
    for counting in range(2):
        if counting:
            walk(parameters, pair, alignment, counts, link_count, 1 / total)
        number = 0
        for j in range(m):
            old = alignment[j]
            for i in range(width):
                if i == old or not open_to[j, i]:
                    continue
                alignment[j] = i
                if not counting:
                    values[number] = np.exp(walk(parameters, pair, alignment, counts, link_count, 0.0) - best)
                    total += values[number]
                elif values[number] > LEAST:
                    walk(parameters, pair, alignment, counts, link_count, values[number] / total)
                number += 1
            alignment[j] = old
            for k in range(j + 1, m):
                if alignment[k] == old or not (open_to[j, alignment[k]] and open_to[k, old]):
                    continue
                alignment[j], alignment[k] = alignment[k], old
                if not counting:
                    values[number] = np.exp(walk(parameters, pair, alignment, counts, link_count, 0.0) - best)
                    total += values[number]
                elif values[number] > LEAST:
                    walk(parameters, pair, alignment, counts, link_count, values[number] / total)
                number += 1
                alignment[j], alignment[k] = old, alignment[j]
    result: float = best + np.log(total)
    return result


@njit(cache=True, nogil=True)
def _count_all(
    parameters: Parameters, counts: Counts, pair: SentencePair, alignment: Ids, link_count: Numbers
) -> float:
    """Over every alignment; `alignment` becomes the likeliest."""
    m, width = link_count.shape
    every = np.zeros(m, alignment.dtype)
    values = np.empty(width**m)
    norm = 0.0
    for counting in range(2):
        top = values.max() if counting else 0.0
        if counting:
            norm = np.log(np.exp(values - top).sum()) + top
        for number in range(len(values)):
            rest = number
            for j in range(m):
                every[j] = rest % width
                rest //= width
            if not counting:
                values[number] = walk(parameters, pair, every, counts, link_count, 0.0)
            else:
                walk(parameters, pair, every, counts, link_count, np.exp(values[number] - norm))
                if values[number] == top:
                    alignment[:] = every
    return norm
