"""BLEU of parts of a test set, and how sure it is.

A sentence's n-gram counts are taken once; the BLEU of any set of sentences follows from their sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU

from dragoman_training.run.validation import bleu_tokenizer

RESAMPLES = 1000


@dataclass(frozen=True)
class Score:
    """BLEU of some sentences."""

    bleu: float
    """sacreBLEU's corpus BLEU."""
    half_width: float
    """Half the width of its 95% interval, by bootstrap over the sentences (Koehn 2004)."""


class Scorer:
    """Scores parts of one system's translations, by characters or words as validation does."""

    def __init__(
        self,
        translations: Sequence[str],
        references: Sequence[str],
        *,
        lowercase: bool,
        target_language: str,
    ) -> None:
        words = bleu_tokenizer(target_language)
        metric = BLEU(lowercase=lowercase, tokenize=words, effective_order=True)
        bleu = BLEU(lowercase=lowercase, tokenize=words, references=[list(references)])
        self.signature = str(bleu.get_signature())
        sentences = [
            metric.sentence_score(translation, [reference])
            for translation, reference in zip(translations, references, strict=True)
        ]
        self._counts: NDArray[np.int64] = np.array(
            [
                [*statistics.counts, *statistics.totals, statistics.sys_len, statistics.ref_len]
                for statistics in sentences
            ],
            dtype=np.int64,
        )

    def score(self, numbers: Sequence[int]) -> Score:
        """The BLEU of some sentences, by their places; its interval comes out the same every time."""
        low, high = interval(self.resampled(numbers))
        return Score(bleu=_bleu(self._counts[list(numbers)].sum(axis=0)), half_width=(high - low) / 2)

    def length(self, numbers: Sequence[int]) -> float:
        """How long some translations are by their references, in what BLEU counts."""
        *_, system_length, reference_length = self._counts[list(numbers)].sum(axis=0).tolist()
        return float(system_length / reference_length)

    def resampled(self, numbers: Sequence[int]) -> NDArray[np.float64]:
        """The BLEU of RESAMPLES draws of as many of these sentences.

        Which are drawn depends on `numbers` alone: systems are compared on the same draws, and those of other
        sentences are others.
        """
        counts = self._counts[list(numbers)]
        generator = np.random.default_rng(list(numbers))
        drawn = generator.integers(0, len(counts), (RESAMPLES, len(counts)))
        return np.array([_bleu(counts[draw].sum(axis=0)) for draw in drawn])


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
