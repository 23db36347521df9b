"""The best step along a line of weights, exactly (Och 2003, section 4).

Along w + γ d the score of each translation is a line in γ, and the best translation of a sentence changes
where two lines cross, on their upper envelope. Between crossings BLEU is constant.

Shapes: S sentences, N translations of all of them, F features.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.classics.smt.tuning.bleu import Counts, bleu

Numbers = NDArray[np.float64]
MARGIN = 1.0
"""How far beyond the first and the last crossing γ is tried."""


@njit(cache=True, nogil=True)
def search_line(
    offset_N: Numbers, slope_N: Numbers, counts_N10: Counts, first_S: NDArray[np.int64]
) -> tuple[float, float]:
    """The γ in the middle of the best interval, and its BLEU. Of equals the one nearest to 0."""
    num_sentences = len(first_S) - 1
    at = np.zeros(len(offset_N))
    change_N10 = np.zeros((len(offset_N), counts_N10.shape[1]))
    total = np.zeros(counts_N10.shape[1])
    num_changes = 0
    hull = np.zeros(len(offset_N), np.int64)
    start_of = np.zeros(len(offset_N))
    for sentence in range(num_sentences):
        first, end = first_S[sentence], first_S[sentence + 1]
        # By slope; of equal slopes the highest line last.
        order = first + np.argsort(offset_N[first:end], kind="mergesort")
        order = order[np.argsort(slope_N[order], kind="mergesort")]
        size = 0
        for line in order:
            start = -np.inf
            while size > 0:
                top = hull[size - 1]
                if slope_N[top] == slope_N[line]:
                    size -= 1
                    continue
                start = (offset_N[top] - offset_N[line]) / (slope_N[line] - slope_N[top])
                if start > start_of[size - 1]:
                    break
                size -= 1
                start = -np.inf
            hull[size], start_of[size] = line, start
            size += 1
        total += counts_N10[hull[0]]
        for rank in range(1, size):
            at[num_changes] = start_of[rank]
            change_N10[num_changes] = counts_N10[hull[rank]] - counts_N10[hull[rank - 1]]
            num_changes += 1
    if num_changes == 0:
        return 0.0, bleu(total)
    order = np.argsort(at[:num_changes], kind="mergesort")
    best, best_gamma = bleu(total), min(0.0, at[order[0]] - MARGIN)
    for rank in range(num_changes):
        total += change_N10[order[rank]]
        here = at[order[rank]]
        after = at[order[rank + 1]] if rank + 1 < num_changes else max(0.0, here + 2 * MARGIN)
        if after - here < 1e-9:
            continue
        gamma = 0.0 if here < 0.0 < after else (here + after) / 2
        score = bleu(total)
        if score > best + 1e-9 or (score > best - 1e-9 and abs(gamma) < abs(best_gamma)):
            best, best_gamma = score, gamma
    return best_gamma, best
