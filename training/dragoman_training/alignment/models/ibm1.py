"""IBM model 1 (Brown et al. 1993, section 4.1): a target word comes from any source word or NULL, all alike.

Shapes: P distinct word pairs, L links, S sentence pairs.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Ids, Offsets
from dragoman_training.alignment.corpus.cooccurrence import Cooccurrence
from dragoman_training.alignment.lexicon import Numbers


def expect1(cooccurrence: Cooccurrence, lexicon_P: Numbers) -> tuple[Numbers, float, NDArray[np.float32]]:
    """Expected counts c(f|e) of all pairs (eq. 17), the log-likelihood (eq. 15), and posteriors. [L]"""
    count_P = np.zeros(len(lexicon_P))
    posterior_L = np.empty(len(cooccurrence.pair_L), np.float32)
    sizes = cooccurrence.source_size_S, cooccurrence.target_size_S
    log_likelihood = _expect(
        lexicon_P, cooccurrence.pair_L, cooccurrence.first_S, *sizes, count_P, posterior_L
    )
    return count_P, log_likelihood, posterior_L


@njit(cache=True, nogil=True)
def _expect(
    lexicon_P: Numbers,
    pair_L: Ids,
    first_S: Offsets,
    source_size_S: Offsets,
    target_size_S: Offsets,
    count_P: Numbers,
    posterior_L: NDArray[np.float32],
) -> float:
    log_likelihood = 0.0
    for sentence in range(len(source_size_S)):
        width = source_size_S[sentence] + 1
        for target in range(target_size_S[sentence]):
            link = first_S[sentence] + target * width
            pairs = pair_L[link : link + width]
            total = 0.0
            for pair in pairs:
                total += lexicon_P[pair]
            if total <= 0:
                total = 1e-300
            log_likelihood += np.log(total / width)
            for i, pair in enumerate(pairs):
                share = lexicon_P[pair] / total
                count_P[pair] += share
                posterior_L[link + i] = share
    return log_likelihood
