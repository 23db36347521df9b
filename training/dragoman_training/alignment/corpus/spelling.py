"""How alike two words are spelt: names, numbers and words of one origin often keep their letters.

Shapes: V words of a vocabulary, C characters of its longest word, P distinct word pairs.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Ids
from dragoman_training.alignment.lexicon import Numbers

MAX_CHARACTERS = 24
"""What a word has beyond is not compared."""


def likeness(
    source_words: tuple[str, ...], target_words: tuple[str, ...], source_P: Ids, target_P: Ids
) -> Numbers:
    """1 - edit distance / length of the longer word, for each pair; 0 for words without a spelling. [P]"""
    return _likeness(*_letters(source_words), *_letters(target_words), source_P, target_P)


def _letters(words: tuple[str, ...]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Code points [V, C], padded, and lengths [V]."""
    size_V = np.array([min(len(word), MAX_CHARACTERS) for word in words], np.int32)
    letter_VC = np.zeros((len(words), MAX_CHARACTERS), np.int32)
    for number, word in enumerate(words):
        letter_VC[number, : size_V[number]] = [ord(letter) for letter in word[:MAX_CHARACTERS]]
    return letter_VC, size_V


@njit(cache=True, nogil=True)
def _likeness(
    source_VC: NDArray[np.int32],
    source_size_V: NDArray[np.int32],
    target_VC: NDArray[np.int32],
    target_size_V: NDArray[np.int32],
    source_P: Ids,
    target_P: Ids,
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
