"""t(target | source), the lexicon that all models share; and how alike words are spelt, a prior of it.

Shapes: P distinct word pairs, V source words and NULL; in spelling words, C characters of the longest.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.bitext import Ids, Links, Numbers, Offsets

MAX_CHARACTERS = 24
"""Characters of a word that are compared with another's."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Lexicon:
    """t(target | source) as it is saved: a row of target words for each source word, and then for NULL."""

    first_V: Offsets
    target_P: Ids
    """Ascending in each row."""
    probability_P: NDArray[np.float32]

    @classmethod
    def of(cls, links: Links, lexicon_P: Numbers, min_probability: float) -> "Lexicon":
        """The lexicon of a bitext's pairs, without those that are less likely."""
        kept_P = lexicon_P >= min_probability
        before = np.concatenate([[0], np.cumsum(kept_P)])
        probability_P = lexicon_P[kept_P].astype(np.float32)
        first_V, target_P = before[links.first_V], links.target_P[kept_P]
        return cls(first_V=first_V, target_P=target_P, probability_P=probability_P)

    def look_up(self, source_P: Ids, target_P: Ids) -> tuple[Numbers, NDArray[np.bool_]]:
        """The probabilities of pairs, and which there are. Words without a row are behind NULL."""
        return _look_up(self.first_V, self.target_P, self.probability_P, source_P, target_P)


@njit(cache=True, nogil=True)
def _look_up(
    first_V: Offsets, own_target_P: Ids, own_probability_P: NDArray[np.float32], source_P: Ids, target_P: Ids
) -> tuple[Numbers, NDArray[np.bool_]]:
    """Bisects each pair's row, so that the time does not grow with the lexicon."""
    probability_P, found_P = np.zeros(len(source_P)), np.zeros(len(source_P), np.bool_)
    for pair in range(len(source_P)):
        if source_P[pair] < len(first_V) - 1:
            first, end = first_V[source_P[pair]], first_V[source_P[pair] + 1]
            place = first + np.searchsorted(own_target_P[first:end], target_P[pair])
            if place < end and own_target_P[place] == target_P[pair]:
                probability_P[pair], found_P[pair] = own_probability_P[place], True
    return probability_P, found_P


def uniform_lexicon(links: Links) -> Numbers:
    """Every target word is as likely as any."""
    return np.full(len(links.target_P), 1 / max(1, links.num_target_words))


def estimate_lexicon(links: Links, count_P: Numbers, alpha: float, prior_P: Numbers | None = None) -> Numbers:
    """t from expected counts (Brown et al. 1993, eq. 14) and prior ones, alpha of every pair."""
    own_P = count_P + alpha
    if prior_P is not None:
        own_P += prior_P
    first_V = links.first_V
    total_V = np.zeros(len(first_V) - 1)
    full_V = np.diff(first_V) > 0
    if len(own_P):
        total_V[full_V] = np.add.reduceat(own_P, first_V[:-1][full_V])
    # Words that were never seen with a source word have their prior counts, too.
    total_V += alpha * (links.num_target_words - np.diff(first_V))
    result: Numbers = own_P / np.repeat(np.where(full_V, np.maximum(total_V, 1e-300), 1), np.diff(first_V))
    return result


def likeness(
    source_words: tuple[str, ...], target_words: tuple[str, ...], source_P: Ids, target_P: Ids
) -> Numbers:
    """1 - edit distance / length of the longer word, of each pair: names and numbers keep their letters. [P]

    0 for words without a spelling, such as NULL.
    """
    return _likeness(*_letters(source_words), *_letters(target_words), source_P, target_P)


def _letters(words: tuple[str, ...]) -> tuple[Ids, Ids]:
    """Code points [V, C], padded, and lengths [V]."""
    size_V = np.array([min(len(word), MAX_CHARACTERS) for word in words], np.int32)
    letter_VC = np.zeros((len(words), MAX_CHARACTERS), np.int32)
    for number, word in enumerate(words):
        letter_VC[number, : size_V[number]] = [ord(letter) for letter in word[:MAX_CHARACTERS]]
    return letter_VC, size_V


@njit(cache=True, nogil=True)
def _likeness(
    source_VC: Ids, source_size_V: Ids, target_VC: Ids, target_size_V: Ids, source_P: Ids, target_P: Ids
) -> Numbers:
    result = np.zeros(len(source_P))
    row = np.empty(MAX_CHARACTERS + 1, np.int64)
    for pair in range(len(source_P)):
        if source_P[pair] >= len(source_size_V) or target_P[pair] >= len(target_size_V):
            continue
        source, target = source_VC[source_P[pair]], target_VC[target_P[pair]]
        m, n = source_size_V[source_P[pair]], target_size_V[target_P[pair]]
        if m == 0 or n == 0 or 2 * abs(m - n) > max(m, n):
            continue
        for place in range(n + 1):
            row[place] = place
        for a in range(1, m + 1):
            corner = row[0]
            row[0] = a
            for b in range(1, n + 1):
                above = row[b]
                best = corner if source[a - 1] == target[b - 1] else corner + 1
                row[b] = min(best, above + 1, row[b - 1] + 1)
                corner = above
        result[pair] = 1 - row[n] / max(m, n)
    return result
