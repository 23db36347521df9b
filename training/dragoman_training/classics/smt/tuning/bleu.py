"""The counts of which BLEU is made (Papineni et al. 2002), sentence by sentence, and BLEU of their sums.

Shapes: K translations of a sentence, 10 counts: matching n-grams of 1 to 4 words, all n-grams, words of the
translation, words of the reference.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

Counts = NDArray[np.float64]
ORDER = 4


def count_matches(translations: Sequence[str], reference: str) -> Counts:
    """Words are those of sacreBLEU's tokenizer 13a. [K, 10]"""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    split = Tokenizer13a()  # type: ignore[no-untyped-call]
    reference_words = split(reference).split()
    wanted = [Counter(_ngrams(reference_words, size)) for size in range(1, ORDER + 1)]
    rows = []
    for translation in translations:
        words = split(translation).split()
        matches, totals = [], []
        for size in range(1, ORDER + 1):
            there = Counter(_ngrams(words, size))
            matches.append(sum((there & wanted[size - 1]).values()))
            totals.append(max(0, len(words) - size + 1))
        rows.append([*matches, *totals, len(words), len(reference_words)])
    return np.array(rows, np.float64).reshape(-1, 2 * ORDER + 2)


def _ngrams(words: list[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]


@njit(cache=True, nogil=True)
def bleu(counts: Counts) -> float:
    """In percent. Where no n-gram of a size matches, half of one does, so that few sentences have a score."""
    if counts[ORDER] == 0 or counts[0] == 0:
        return 0.0
    log = 0.0
    for size in range(ORDER):
        matches, total = max(counts[size], 0.5), max(counts[ORDER + size], 1.0)
        log += np.log(matches / total) / ORDER
    return float(100 * np.exp(log + min(0.0, 1 - counts[2 * ORDER + 1] / counts[2 * ORDER])))
