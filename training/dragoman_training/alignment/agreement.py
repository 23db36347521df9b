"""Two directions that learn from what both believe (Liang et al. 2006, section 3).

A link's expected count is the product of its posteriors in both directions. Each direction learns only
what the other confirms. It is no expectation maximisation: the likelihood may fall.

Shapes: S sentence pairs, L links of the forward direction, K links of the backward one.
"""

import numpy as np
from numba import njit

from dragoman_training.alignment.corpus.bitext import Ids, Offsets
from dragoman_training.alignment.corpus.cooccurrence import Cooccurrence
from dragoman_training.alignment.lexicon import Numbers
from dragoman_training.alignment.models.model import Posteriors


def count_agreed(
    forward: Cooccurrence, backward: Cooccurrence, posterior_L: Posteriors, posterior_K: Posteriors
) -> tuple[Numbers, Numbers]:
    """Expected counts of the pairs of both directions. Words of NULL count as each direction has them."""
    forward_P, backward_P = np.zeros(len(forward.target_P)), np.zeros(len(backward.target_P))
    _count(
        forward.pair_L,
        backward.pair_L,
        forward.first_S,
        backward.first_S,
        forward.source_size_S,
        forward.target_size_S,
        posterior_L,
        posterior_K,
        forward_P,
        backward_P,
    )
    return forward_P, backward_P


@njit(cache=True, nogil=True)
def _count(
    pair_L: Ids,
    pair_K: Ids,
    forward_first_S: Offsets,
    backward_first_S: Offsets,
    source_size_S: Offsets,
    target_size_S: Offsets,
    posterior_L: Posteriors,
    posterior_K: Posteriors,
    forward_P: Numbers,
    backward_P: Numbers,
) -> None:
    for sentence in range(len(source_size_S)):
        num_sources, num_targets = source_size_S[sentence], target_size_S[sentence]
        for j in range(num_targets):
            null = forward_first_S[sentence] + j * (num_sources + 1)
            forward_P[pair_L[null]] += posterior_L[null]
            for i in range(num_sources):
                other = backward_first_S[sentence] + i * (num_targets + 1) + j + 1
                agreed = posterior_L[null + i + 1] * posterior_K[other]
                forward_P[pair_L[null + i + 1]] += agreed
                backward_P[pair_K[other]] += agreed
        for i in range(num_sources):
            null = backward_first_S[sentence] + i * (num_targets + 1)
            backward_P[pair_K[null]] += posterior_K[null]
