"""log P(f, a | e) of models 3, 4 and 5 (Brown et al. 1993, sections 4.4 to 4.6), and its counts.

A source word makes as many target words as its fertility says, its cept. Then each finds its place:

- model 3 (eq. 32): each at a place of its own, d(j|i,l,m);
- model 4 (eq. 37 to 40): the first relative to the centre of the cept before, d1(j - c|A(e),B(f)), each
  next one relative to the one before it, d>1(j - j'|B(f));
- model 5 (eq. 46 to 49): the same counted in vacancies, of those only that leave room for the rest of the
  cept.

Models 3 and 4 put words on top of each other or outside the sentence with some probability; model 5 does not.

Shapes: V source words of the vocabulary and the unknown one, F fertilities from 0 on, A classes of source
words and, as the last one, of the beginning, B classes of target words, D jumps, from -(D - 1) / 2 on, R room
for words; in one sentence pair m target words, l source words and NULL.
"""

from math import inf, lgamma
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Ids
from dragoman_training.alignment.lexicon import Numbers

NEVER = -100.0
"""The logarithm of nothing, for which climbing still prefers less of it."""


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
    """What is counted beside links."""

    fertility_VF: Numbers
    head_ABD: Numbers
    tail_BD: Numbers
    head_room_BRR: NDArray[np.float64]
    """Model 5: how often a first word met so many vacancies up to the centre, and so much room."""
    tail_room_BR: Numbers
    """Model 5: how often a later word met so much room."""


class SentencePair(NamedTuple):
    """One sentence pair."""

    log_lexicon: Numbers
    """[m, l + 1]"""
    log_place: Numbers
    """Model 3's log d(j|i,l,m). [m, l + 1]"""
    source_l: Ids
    """Numbers in the vocabulary."""
    source_class_l: Ids
    target_class_m: Ids


@njit(cache=True, nogil=True)
def walk(
    parameters: Parameters,
    pair: SentencePair,
    alignment_m: Ids,
    counts: Counts,
    link_count: Numbers,
    weight: float,
) -> float:
    """log P(f, a | e); a weight above 0 is added to all counts. `link_count` is [m, l + 1]."""
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
        size = size_i[i]
        result += (
            parameters.log_fertility_VF[pair.source_l[i - 1], size] if size <= most else NEVER * (size - most)
        )
        if weight > 0 and size <= most:
            counts.fertility_VF[pair.source_l[i - 1], size] += weight
    for j in range(m):
        i = alignment_m[j]
        result += pair.log_lexicon[j, i]
        if parameters.model == 3 and i > 0:
            result += pair.log_place[j, i]
        if weight > 0:
            link_count[j, i] += weight
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
