"""t(target | source): the lexicon that all models share, as one number for each pair of words seen together.

Re-estimated from expected counts, by maximum likelihood or by variational Bayes (Riley & Gildea 2012): with a
Dirichlet prior of α below one, rare source words no longer explain whatever stands beside them.

Shapes: P distinct word pairs, V source words and NULL.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.cooccurrence import Cooccurrence

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Smoothing:
    """How a lexicon is estimated."""

    alpha: float = 0.0
    """Prior count of every pair of words; 0 for maximum likelihood."""
    bayes: bool = False
    """Whether exp(E[log t]) takes the place of the mean: variational Bayes."""


def uniform_lexicon(cooccurrence: Cooccurrence) -> Numbers:
    """Every target word is as likely as any."""
    return np.full(len(cooccurrence.target_P), 1 / max(1, cooccurrence.num_target_words))


def estimate_lexicon(
    cooccurrence: Cooccurrence, count_P: Numbers, smoothing: Smoothing, prior_P: Numbers | None = None
) -> Numbers:
    """t from expected counts (Brown et al. 1993, eq. 14); `prior_P` has prior counts beside alpha's."""
    own_P = count_P + smoothing.alpha
    if prior_P is not None:
        own_P += prior_P
    first_V = cooccurrence.first_V
    total_V = np.zeros(len(first_V) - 1)
    full_V = np.diff(first_V) > 0
    if len(own_P):
        total_V[full_V] = np.add.reduceat(own_P, first_V[:-1][full_V])
    # Words that were never seen with a source word have their prior counts, too.
    total_V += smoothing.alpha * (cooccurrence.num_target_words - np.diff(first_V))
    if smoothing.bayes:
        own_P, total_V = exp_digamma(own_P), exp_digamma(total_V)
    result: Numbers = own_P / np.repeat(np.where(full_V, np.maximum(total_V, 1e-300), 1), np.diff(first_V))
    return result


@njit(cache=True, nogil=True)
def exp_digamma(values: Numbers) -> Numbers:
    """exp(ψ(x)), by recurrence up to 6 and the asymptotic series from there (Abramowitz & Stegun 6.3.18)."""
    result = np.empty_like(values)
    for place in range(len(values)):
        x = values[place]
        if x <= 1e-3:
            # ψ(x) is about -1/x: nothing is left of it.
            result[place] = 0.0
            continue
        shift = 0.0
        while x < 6:
            shift += 1 / x
            x += 1
        square = 1 / (x * x)
        psi = np.log(x) - 0.5 / x - square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))
        result[place] = np.exp(psi - shift)
    return result
