"""log P(f, a | e) of models 3, 4 and 5 (Brown et al. 1993, sections 4.4 to 4.6), and its counts by climbing.

A source word makes as many target words as its fertility says, its cept. Then each finds its place:

- model 3 (eq. 32): each at a place of its own, d(j|i,l,m);
- model 4 (eq. 37 to 40): the first relative to the centre of the cept before, d1(j - c|A(e),B(f)), each
  next one relative to the one before it, d>1(j - j'|B(f));
- model 5 (eq. 46 to 49): the same counted in vacancies that leave room for the rest of the cept.

Models 3 and 4 put words on top of each other or outside the sentence with some probability; model 5 does not.

Counts are collected over the best alignment found by hill climbing (section 4.3; Och & Ney 2003, section 3.3)
and its neighbours, which differ by one word that moves to another source word, or by two that swap theirs;
where a pair has few alignments, over all.

Shapes: U target words and N source words of the bitext, S sentence pairs, L links, Q places of model 3, V
source words of the vocabulary and the unknown one, F fertilities from 0 on, A classes of source words and, as
the last one, of the beginning, B classes of target words, D jumps, from -(D - 1) / 2 on, R room for words; in
one sentence pair m target words, l source words and NULL.
"""

from math import inf, lgamma
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.bitext import Ids, Links, Numbers, Offsets
from dragoman_training.alignment.models import Posteriors

NEVER = -100.0
"""The logarithm of nothing, for which climbing still prefers less of it."""
LEAST = 1e-4
"""Neighbours less likely than the best by this factor count nothing."""
LOG_UNLIKELY = -10.0
"""A word is not moved to one that its lexicon makes less likely than its likeliest by exp of this."""


class Parameters(NamedTuple):
    """Logarithms of probabilities, but for model 5's weights."""

    model: int
    """3, 4 or 5."""
    log_null: float
    """log p1: that a word makes another one which comes from NULL."""
    log_not_null: float
    log_fertility_VF: Numbers
    """log n(phi|e); of model 3 with log phi!, its orders of the cept."""
    head_ABD: Numbers
    """d1; in model 5 its weights, with one A."""
    tail_BD: Numbers
    """d>1; in model 5 its weights."""


class Counts(NamedTuple):
    """Counts of all but the links."""

    fertility_VF: Numbers
    head_ABD: Numbers
    tail_BD: Numbers
    head_room_BRR: Numbers
    """Model 5: how often a first word met so many vacancies up to the centre, and so much room."""
    tail_room_BR: Numbers
    """Model 5: how often a later word met so much room."""


class SentencePair(NamedTuple):
    log_lexicon: Numbers
    """[m, l + 1]"""
    log_place: Numbers
    """Model 3's log d(j|i,l,m). [m, l + 1]"""
    source_l: Ids
    """Numbers in the vocabulary."""
    source_class_l: Ids
    target_class_m: Ids
    alignment_m: Ids
    link_count: Numbers
    """How often each link was counted. [m, l + 1]"""


@njit(cache=True, nogil=True)
def walk(parameters: Parameters, counts: Counts, pair: SentencePair, weight: float) -> float:
    """log P(f, a | e) of the pair's alignment; a weight above 0 is added to all counts."""
    alignment_m = pair.alignment_m
    m, width = pair.log_lexicon.shape
    size_i = np.zeros(width, np.int64)
    for j in range(m):
        size_i[alignment_m[j]] += 1
    silent = size_i[0]
    if 2 * silent > m:
        return -inf
    # p0 and p1 (eq. 31): each word that is not of NULL makes one of NULL or none.
    result: float = lgamma(m - silent + 1.0) - lgamma(silent + 1.0) - lgamma(m - 2.0 * silent + 1.0)
    result += silent * parameters.log_null + (m - 2 * silent) * parameters.log_not_null
    most = parameters.log_fertility_VF.shape[1] - 1
    for i in range(1, width):
        size, source = size_i[i], pair.source_l[i - 1]
        result += parameters.log_fertility_VF[source, size] if size <= most else NEVER * (size - most)
        if weight > 0 and size <= most:
            counts.fertility_VF[source, size] += weight
    for j in range(m):
        i = alignment_m[j]
        result += pair.log_lexicon[j, i]
        if parameters.model == 3 and i > 0:
            result += pair.log_place[j, i]
        if weight > 0:
            pair.link_count[j, i] += weight
    if parameters.model == 3:
        return result
    # Positions by cept, ascending within each.
    first_i = np.zeros(width + 1, np.int64)
    for i in range(width):
        first_i[i + 1] = first_i[i] + size_i[i]
    position = np.empty(m, np.int64)
    filled_i = first_i[:-1].copy()
    for j in range(m):
        position[filled_i[alignment_m[j]]] = j + 1
        filled_i[alignment_m[j]] += 1
    middle = parameters.tail_BD.shape[1] // 2
    free = np.ones(m + 1, np.bool_)
    num_free = m
    center, before = 0, parameters.head_ABD.shape[0] - 1
    for i in range(1, width):
        size = size_i[i]
        total = 0
        for k in range(size):
            j = position[first_i[i] + k]
            label = pair.target_class_m[j - 1]
            total += j
            last = position[first_i[i] + k - 1] if k else center
            if parameters.model == 4:
                place = middle + j - last
                if k == 0:
                    result += parameters.head_ABD[before, label, place]
                    if weight > 0:
                        counts.head_ABD[before, label, place] += weight
                else:
                    result += parameters.tail_BD[label, place]
                    if weight > 0:
                        counts.tail_BD[label, place] += weight
                continue
            # Vacancies up to the last place and to this one, and how many this word may choose from.
            origin, own = 0, 0
            for n in range(1, j + 1):
                own += free[n]
            for n in range(1, last + 1):
                origin += free[n]
            room = num_free - size + k + 1 - (origin if k else 0)
            weights = parameters.tail_BD[label] if k else parameters.head_ABD[0, label]
            begin = middle + 1 - (0 if k else origin)
            place = middle + own - origin
            norm = 0.0
            for n in range(begin, begin + room):
                norm += weights[n]
            result += np.log(weights[place] / norm) if weights[place] > 0 else NEVER
            if weight > 0 and k:
                counts.tail_BD[label, place] += weight
                counts.tail_room_BR[label, room] += weight
            elif weight > 0:
                counts.head_ABD[0, label, place] += weight
                counts.head_room_BRR[label, origin, room] += weight
            free[j] = False
            num_free -= 1
        if size:
            center = (total + size - 1) // size
            if parameters.model == 4:
                before = pair.source_class_l[i - 1]
    return result


class Text(NamedTuple):
    """A bitext as climbing reads it."""

    links: Links
    source_N: Ids
    source_class_N: Ids
    target_class_U: Ids
    log_place_Q: Numbers
    first_place_S: Offsets


@njit(cache=True, nogil=True)
def collect(
    parameters: Parameters,
    counts: Counts,
    text: Text,
    lexicon_P: Numbers,
    alignment_U: Ids,
    max_alignments: int,
    max_words: int,
) -> tuple[Posteriors, float]:
    """Climbs from the alignments given, in place, and adds to counts. Posteriors [L], log-likelihood.

    With `max_alignments` below 0 the alignments given are all that is counted. Sentences beyond `max_words`
    and those with nothing to choose from are left as they are, and count nothing.
    """
    links = text.links
    posterior_L = np.zeros(len(links.pair_L), np.float32)
    log_likelihood = 0.0
    first_n, first_u = 0, 0
    for sentence in range(len(links.first_S) - 1):
        m, width = links.target_size_S[sentence], links.source_size_S[sentence] + 1
        first = links.first_S[sentence]
        words_u, words_n = slice(first_u, first_u + m), slice(first_n, first_n + width - 1)
        first_u += m
        first_n += width - 1
        alignment = alignment_U[words_u]
        if m == 0 or width == 1 or m > max_words or width > max_words + 1:
            for j in range(m):
                posterior_L[first + j * width + alignment[j]] = 1
            continue
        own_P = lexicon_P[links.pair_L[first : first + m * width]]
        log_place = log_lexicon = np.log(np.maximum(own_P, 1e-300)).reshape(m, width)
        if parameters.model == 3:
            first_place = text.first_place_S[sentence]
            log_place = text.log_place_Q[first_place : first_place + m * width].reshape(m, width)
        words = text.source_N[words_n], text.source_class_N[words_n], text.target_class_U[words_u]
        pair = SentencePair(log_lexicon, log_place, *words, alignment, np.zeros((m, width)))
        if max_alignments >= 0 and float(width) ** m <= max_alignments:
            log_likelihood += _count_all(parameters, counts, pair)
        else:
            _limit_null(alignment)
            if max_alignments < 0:
                walk(parameters, counts, pair, 1.0)
            else:
                log_likelihood += _climb(parameters, counts, pair)
        posterior_L[first : first + m * width] = pair.link_count.reshape(-1).astype(np.float32)
    return posterior_L, log_likelihood


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
def _neighbours(log_lexicon: Numbers, alignment: Ids) -> NDArray[np.int64]:
    """[neighbours, 3]: a word, the source word that it moves to, and the word that it swaps with or -1."""
    m, width = log_lexicon.shape
    open_to = np.empty((m, width), np.bool_)
    for j in range(m):
        open_to[j] = log_lexicon[j] >= log_lexicon[j].max() + LOG_UNLIKELY
    found = np.empty((m * (width + m), 3), np.int64)
    number = 0
    for j in range(m):
        old = alignment[j]
        for i in range(width):
            if i != old and open_to[j, i]:
                found[number] = (j, i, -1)
                number += 1
        for k in range(j + 1, m):
            if alignment[k] != old and open_to[j, alignment[k]] and open_to[k, old]:
                found[number] = (j, np.int64(alignment[k]), k)
                number += 1
    return found[:number]


@njit(cache=True, nogil=True)
def _go(neighbour: NDArray[np.int64], alignment: Ids) -> None:
    """Changes the alignment to a neighbour, in place."""
    j, i, k = neighbour[0], neighbour[1], neighbour[2]
    if k >= 0:
        alignment[k] = alignment[j]
    alignment[j] = i


@njit(cache=True, nogil=True)
def _walk_to(
    neighbour: NDArray[np.int64], parameters: Parameters, counts: Counts, pair: SentencePair, weight: float
) -> float:
    """`walk` over a neighbour of the pair's alignment, which stays as it is."""
    j, i, k = neighbour[0], neighbour[1], neighbour[2]
    old = pair.alignment_m[j]
    _go(neighbour, pair.alignment_m)
    value: float = walk(parameters, counts, pair, weight)
    pair.alignment_m[j] = old
    if k >= 0:
        pair.alignment_m[k] = i
    return value


@njit(cache=True, nogil=True)
def _climb(parameters: Parameters, counts: Counts, pair: SentencePair) -> float:
    """Goes to the best neighbour until none is better, and counts its neighbours; the log-likelihood."""
    best = walk(parameters, counts, pair, 0.0)
    while True:
        neighbours = _neighbours(pair.log_lexicon, pair.alignment_m)
        values = np.empty(len(neighbours))
        top, number = best + 1e-9, -1
        for place in range(len(neighbours)):
            values[place] = _walk_to(neighbours[place], parameters, counts, pair, 0.0)
            if values[place] > top:
                top, number = values[place], place
        if number < 0:
            break
        best = top
        _go(neighbours[number], pair.alignment_m)
    total = 1.0
    for place in range(len(neighbours)):
        values[place] = np.exp(values[place] - best)
        total += values[place]
    walk(parameters, counts, pair, 1 / total)
    for place in range(len(neighbours)):
        if values[place] > LEAST:
            _walk_to(neighbours[place], parameters, counts, pair, values[place] / total)
    result: float = best + np.log(total)
    return result


@njit(cache=True, nogil=True)
def _count_all(parameters: Parameters, counts: Counts, pair: SentencePair) -> float:
    """Counts every alignment; the pair's becomes the likeliest. Returns the log-likelihood."""
    m, width = pair.link_count.shape
    values, likeliest = np.empty(width**m), np.zeros_like(pair.alignment_m)
    top, norm = 0.0, 0.0
    for counting in range(2):
        if counting:
            top = values.max()
            norm = np.log(np.exp(values - top).sum()) + top
        for number in range(len(values)):
            rest = number
            for j in range(m):
                pair.alignment_m[j] = rest % width
                rest //= width
            if not counting:
                values[number] = walk(parameters, counts, pair, 0.0)
            else:
                walk(parameters, counts, pair, np.exp(values[number] - norm))
                if values[number] == top:
                    likeliest[:] = pair.alignment_m
    pair.alignment_m[:] = likeliest
    return norm
