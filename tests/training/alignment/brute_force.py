"""All alignments of tiny sentence pairs, one after the other, with the papers' equations in plain loops."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import product
from math import log

import numpy as np
import pytest

from dragoman_training.alignment.bitext import Bitext, Links, Sentences
from dragoman_training.alignment.hmm import HmmCounts
from dragoman_training.alignment.models import Direction, Step

Pair = tuple[Sequence[int], Sequence[int]]
Alignment = tuple[int, ...]
"""a_j for each target position: a source position from 1 on, or 0 for NULL."""

PAIRS: list[Pair] = [([0, 1], [0, 1, 0]), ([1, 2, 0], [2, 1]), ([2], [2, 2, 1]), ([0, 1, 2, 0], [0, 3, 1])]
NUM_SOURCE, NUM_TARGET = 3, 4
NULL = NUM_SOURCE


def bitext_of(pairs: Sequence[Pair], num_source: int = NUM_SOURCE, num_target: int = NUM_TARGET) -> Bitext:
    return Bitext(
        Sentences.of([source for source, _ in pairs], num_source),
        Sentences.of([target for _, target in pairs], num_target),
    )


DIRECTION = Direction.of(bitext_of(PAIRS))
LINKS = DIRECTION.links


def by_pair(links: Links, value_P: np.ndarray) -> dict[tuple[int, int], float]:
    """Values of pairs of words by these, source first."""
    keys = zip(links.source_P.tolist(), links.target_P.tolist(), strict=True)
    return dict(zip(keys, value_P.tolist(), strict=True))


class Expectation:
    """Expected counts under P(f, a | e), by summing over every alignment of every pair."""

    def __init__(
        self, pairs: Sequence[Pair], probability: Callable[[Sequence[int], Sequence[int], Alignment], float]
    ) -> None:
        self.pair: dict[tuple[int, int], float] = defaultdict(float)
        self.alignments: list[dict[Alignment, float]] = []
        self.posteriors: list[np.ndarray] = []
        self.log_likelihood = 0.0
        for source, target in pairs:
            every = product(range(len(source) + 1), repeat=len(target))
            joint = {alignment: probability(source, target, alignment) for alignment in every}
            total = sum(joint.values())
            self.log_likelihood += log(total)
            posterior = np.zeros((len(target), len(source) + 1))
            for alignment, own in joint.items():
                for j, i in enumerate(alignment):
                    posterior[j, i] += own / total
                    self.pair[NULL if i == 0 else source[i - 1], target[j]] += own / total
            self.posteriors.append(posterior)
            self.alignments.append({alignment: own / total for alignment, own in joint.items()})

    def assert_counts(self, found: Step | HmmCounts, rel: float = 1e-6) -> None:
        """Pairs and links are as likely as over all alignments, and so is the text."""
        assert by_pair(LINKS, found.pair_P) == pytest.approx(dict(self.pair), rel=rel)
        assert found.log_likelihood == pytest.approx(self.log_likelihood)
        self.assert_posteriors(found.posterior_L)

    def assert_posteriors(self, posterior_L: np.ndarray) -> None:
        """Each link is as likely as over all alignments."""
        for sentence, posterior in enumerate(self.posteriors):
            own = posterior_L[LINKS.first_S[sentence] : LINKS.first_S[sentence + 1]]
            np.testing.assert_allclose(own.reshape(posterior.shape), posterior, rtol=1e-5, atol=1e-7)
