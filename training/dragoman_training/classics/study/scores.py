"""BLEU of parts of a test set, how sure it is, and what share of it another model has.

A sentence's n-gram counts are taken once; the BLEU of any set of sentences follows from their sum. Intervals
are by bootstrap over the sentences, two models on the same draws (Koehn 2004).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU

from dragoman_training.classics.smt.tuning import count_matches
from dragoman_training.run.validation import bleu_tokenizer

RESAMPLES = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class Score:
    """A number that some sentences give: BLEU, or a share of another model's."""

    value: float
    resampled: NDArray[np.float64]
    """The same of each draw."""

    @property
    def half_width(self) -> float:
        """Half the width of its 95% interval."""
        low, high = interval(self.resampled)
        return (high - low) / 2


class Scorer:
    """Scores parts of one system's translations, by characters or words as validation does."""

    def __init__(
        self, translations: Sequence[str], references: Sequence[str], *, lowercase: bool, target_language: str
    ) -> None:
        words = bleu_tokenizer(target_language)
        metric = BLEU(lowercase=lowercase, tokenize=words, effective_order=True)
        bleu = BLEU(lowercase=lowercase, tokenize=words, references=[list(references)])
        self.signature = str(bleu.get_signature())
        both = zip(translations, references, strict=True)
        counts = [count_matches([translation], reference, metric) for translation, reference in both]
        self._counts = np.concatenate(counts).astype(np.int64)

    def bleu(self, numbers: Sequence[int]) -> float:
        """The corpus BLEU of some sentences, by their places."""
        return _bleu(self._counts[list(numbers)].sum(axis=0))

    def score(self, numbers: Sequence[int]) -> Score:
        """Their BLEU with that of RESAMPLES draws of as many of them.

        Which are drawn depends on `numbers` alone: systems are compared on the same draws, and those of other
        sentences are others.
        """
        counts = self._counts[list(numbers)]
        generator = np.random.default_rng(list(numbers))
        drawn = generator.integers(0, len(counts), (RESAMPLES, len(counts)))
        resampled = np.array([_bleu(counts[draw].sum(axis=0)) for draw in drawn])
        return Score(value=self.bleu(numbers), resampled=resampled)

    def length(self, numbers: Sequence[int]) -> float:
        """How long some translations are by their references, in what BLEU counts."""
        *_, system_length, reference_length = self._counts[list(numbers)].sum(axis=0).tolist()
        return float(system_length / reference_length)


def share_of(one: Scorer, other: Scorer, numbers: Sequence[int]) -> Score | None:
    """What `one` has of the BLEU of `other`; None where that is 0, if only in some draw."""
    own, whole = one.score(numbers), other.score(numbers)
    if not whole.resampled.all():
        return None
    return Score(value=own.value / whole.value, resampled=own.resampled / whole.resampled)


def interval(resampled: NDArray[np.float64]) -> tuple[float, float]:
    """The middle 95% of what came of the draws."""
    low, high = np.percentile(resampled, [2.5, 97.5])
    return float(low), float(high)


def _bleu(counts: NDArray[np.int64]) -> float:
    """BLEU from summed counts, smoothed as sacreBLEU smooths a corpus."""
    *grams, system_length, reference_length = counts.tolist()
    order = len(grams) // 2
    result = BLEU.compute_bleu(
        grams[:order], grams[order:], system_length, reference_length, smooth_method="exp"
    )
    return float(result.score)
