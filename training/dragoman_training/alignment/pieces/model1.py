"""IBM model 1 (Brown et al. 1993, section 4.1): each target piece comes from any source piece or from NULL.

Trained by expectation maximisation, over arrays of links: sums by target token are sums of runs of links,
sums by pair are `bincount`s.

Shapes: P distinct pairs, L links of a block, U target tokens of a block.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman_training.alignment.pieces.links import Block, Links
from dragoman_training.alignment.pieces.table import TranslationTable

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Iteration:
    """What one pass over the corpus found."""

    number: int
    """From 1 on."""
    log_likelihood: float
    """Of the corpus, in nats, under the table that the pass began with; the length's probability left out."""


def train_model1(
    links: Links, *, num_iterations: int, report: Callable[[Iteration], None] | None = None
) -> TranslationTable:
    """The table t(target | source) after so many iterations, from a uniform one."""
    probability_P: Numbers = np.full(len(links.source_P), 1 / links.target_vocabulary)
    for number in range(1, num_iterations + 1):
        count_P = np.zeros(len(links.source_P))
        log_likelihood = 0.0
        for block in links.blocks:
            expected_P, block_likelihood = _expect(block, probability_P)
            count_P += expected_P
            log_likelihood += block_likelihood
        # Brown et al., eq. 14 with its λ: what a source piece gives sums up to one.
        total = np.bincount(links.source_P, weights=count_P, minlength=links.source_vocabulary + 1)
        probability_P = count_P / total[links.source_P]
        if report is not None:
            report(Iteration(number, log_likelihood))
    return TranslationTable.from_pairs(
        links.source_P,
        links.target_P,
        probability_P,
        source_vocabulary=links.source_vocabulary,
    )


def _expect(block: Block, probability_P: Numbers) -> tuple[Numbers, float]:
    """Expected counts of all pairs in the block (Brown et al., eq. 17) and its log-likelihood (eq. 15)."""
    probability_L = probability_P[block.pair_L]
    sum_U = np.add.reduceat(probability_L, block.first_U)
    probability_L /= np.repeat(sum_U, block.size_U)
    expected_P = np.bincount(block.pair_L, weights=probability_L, minlength=len(probability_P))
    return expected_P.astype(np.float64, copy=False), float(np.log(sum_U / block.size_U).sum())
