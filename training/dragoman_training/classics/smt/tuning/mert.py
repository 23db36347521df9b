"""Minimum error rate training on lists of translations (Och 2003).

Shapes: S sentences, N translations of all of them, F features.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman_training.classics.smt.tuning.bleu import Counts, bleu
from dragoman_training.classics.smt.tuning.line_search import Numbers, search_line

MIN_GAIN = 0.01
"""BLEU; a round of lines that gains less was the last."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Candidates:
    """Translations of sentences, with features and BLEU's counts."""

    features_NF: Numbers
    counts_N10: Counts
    first_S: NDArray[np.int64]
    """[S + 1]: where each sentence's begin, and the end."""

    @classmethod
    def of(cls, features: Sequence[Numbers], counts: Sequence[Counts]) -> "Candidates":
        """Both by sentence. Raises ValueError where a sentence has no translation."""
        sizes = [len(own) for own in features]
        if not sizes or not min(sizes):
            raise ValueError("there is a sentence without a translation: nothing can be chosen for it")
        return cls(
            features_NF=np.concatenate(features),
            counts_N10=np.concatenate(counts),
            first_S=np.concatenate([[0], np.cumsum(sizes)]),
        )

    def choose(self, weights_F: Numbers) -> NDArray[np.int64]:
        """Of each sentence the translation with the best score, counted from 0 in its own list. [S]"""
        score_N = self.features_NF @ weights_F
        return np.array(
            [
                np.argmax(score_N[first:end])
                for first, end in zip(self.first_S, self.first_S[1:], strict=False)
            ],
            np.int64,
        )

    def bleu(self, weights_F: Numbers) -> float:
        """Of the translations chosen, in percent."""
        chosen = self.first_S[:-1] + self.choose(weights_F)
        return bleu(self.counts_N10[chosen].sum(axis=0))


def tune(
    candidates: Candidates, start_F: Numbers, *, num_starts: int, random: np.random.Generator
) -> tuple[Numbers, float]:
    """The best weights found from the start and from random ones near it, with their BLEU. [F]

    From each, lines along every feature and as many random directions, the best step at a time, until none
    gains. The sum of the weights' magnitudes is one.
    """
    best_F, best = start_F, -1.0
    for number in range(num_starts):
        weights_F = start_F if number == 0 else start_F + random.normal(size=len(start_F)) * np.abs(start_F)
        found_F, score = _climb(candidates, weights_F, random)
        if score > best + 1e-9:
            best_F, best = found_F, score
    return best_F, best


def _climb(candidates: Candidates, weights_F: Numbers, random: np.random.Generator) -> tuple[Numbers, float]:
    score = candidates.bleu(weights_F)
    while True:
        weights_F = weights_F / max(float(np.abs(weights_F).sum()), 1e-12)
        directions = [*np.eye(len(weights_F)), *random.normal(size=weights_F.shape * 2)]
        offset_N = candidates.features_NF @ weights_F
        steps = [
            search_line(
                offset_N, candidates.features_NF @ direction_F, candidates.counts_N10, candidates.first_S
            )
            for direction_F in directions
        ]
        number = int(np.argmax([found for _, found in steps]))
        gamma, found = steps[number]
        if found < score + MIN_GAIN:
            return weights_F, score
        weights_F, score = weights_F + gamma * directions[number], found
