"""Weights of jumps that are normalised over the jumps which a place has room for.

There is no closed form for them. Each step of minorisation-maximisation (Hunter 2004, "MM algorithms for
generalized Bradley-Terry models", section 5) raises the likelihood, and so does expectation maximisation.

Shapes: D jumps, from -(D - 1) / 2 on, G origins with the same room.
"""

import numpy as np
from numba import njit

from dragoman_training.alignment.corpus.bitext import Offsets
from dragoman_training.alignment.lexicon import Numbers

NUM_STEPS = 20
"""Steps of the maximisation."""


@njit(cache=True, nogil=True)
def maximize_weights(
    weight_D: Numbers,
    count_D: Numbers,
    first_G: Offsets,
    size_G: Offsets,
    number_G: Numbers,
    tied: int,
    prior: float,
) -> None:
    """Weights in place. `number_G` origins had room for the jumps from place `first_G` on, `size_G` of them.

    Jumps beyond `tied` are one with it, on each side. The prior is as many jumps of each kind.
    """
    middle = len(weight_D) // 2
    count = np.zeros(2 * tied + 1)
    for place in range(len(weight_D)):
        count[min(max(place - middle, -tied), tied) + tied] += count_D[place]
    for _ in range(NUM_STEPS):
        # An origin adds N / Z to each jump that it had room for.
        rate_D = np.zeros(len(weight_D))
        for origin in range(len(first_G)):
            run = slice(first_G[origin], first_G[origin] + size_G[origin])
            total = weight_D[run].sum()
            if total > 0:
                rate_D[run] += number_G[origin] / total
        # The prior's jumps come from an origin with room for all.
        total = weight_D[middle - tied : middle + tied + 1].sum()
        open_rate = np.full(2 * tied + 1, prior * (2 * tied + 1) / max(total, 1e-300))
        for place in range(len(weight_D)):
            open_rate[min(max(place - middle, -tied), tied) + tied] += rate_D[place]
        for place in range(len(weight_D)):
            jump = min(max(place - middle, -tied), tied) + tied
            if open_rate[jump] > 0:
                weight_D[place] = (count[jump] + prior) / open_rate[jump]
        top = weight_D.max()
        if top > 0:
            weight_D /= top
