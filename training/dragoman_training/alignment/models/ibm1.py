"""IBM model 1 (Brown et al. 1993, section 4.1): a target word comes from any source word or NULL, all alike.

Shapes: P distinct word pairs, L links, S sentence pairs.
"""

import numpy as np
from numba import njit

from dragoman_training.alignment.bitext import Ids, Offsets
from dragoman_training.alignment.cooccurrence import Cooccurrence
from dragoman_training.alignment.lexicon import Numbers


def expect1(cooccurrence: Cooccurrence, lexicon_P: Numbers) -> tuple[Numbers, float]:
    """Expected counts c(f|e) of all pairs (eq. 17, summed as in 4.1), and the log-likelihood (eq. 15)."""
    count_P = np.zeros(len(lexicon_P))
    sizes = cooccurrence.source_size_S, cooccurrence.target_size_S
    return count_P, _expect(lexicon_P, cooccurrence.pair_L, cooccurrence.first_S, *sizes, count_P)


@njit(cache=True, nogil=True)
def _expect(
    lexicon_P: Numbers,
    pair_L: Ids,
    first_S: Offsets,
    source_size_S: Offsets,
    target_size_S: Offsets,
    count_P: Numbers,
) -> float:
    log_likelihood = 0.0
    for sentence in range(len(source_size_S)):
        width = source_size_S[sentence] + 1
        for target in range(target_size_S[sentence]):
            pairs = pair_L[first_S[sentence] + target * width : first_S[sentence] + (target + 1) * width]
            total = 0.0
            for pair in pairs:
                total += lexicon_P[pair]
            log_likelihood += np.log(total / width)
            for pair in pairs:
                count_P[pair] += lexicon_P[pair] / total
    return log_likelihood
