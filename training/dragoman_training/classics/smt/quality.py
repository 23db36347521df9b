"""How good translations are, by sacreBLEU, with an interval by the bootstrap (Koehn 2004)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman_training.classics.smt.tuning.bleu import bleu, count_matches

NUM_SAMPLES = 1000
SEED = 1


@dataclass(frozen=True, kw_only=True)
class Quality:
    """In percent."""

    bleu: float
    interval: tuple[float, float]
    """Of BLEU, 95%."""
    bleu_lower_cased: float
    chrf: float


def measure(translations: Sequence[str], references: Sequence[str]) -> Quality:
    """Raises ValueError where there is nothing to measure."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    if not translations:
        raise ValueError("the test set is empty: there is nothing to measure")
    low, _, high = bootstrap([translations], references)[0]
    return Quality(
        bleu=BLEU().corpus_score(translations, [references]).score,
        interval=(low, high),
        bleu_lower_cased=BLEU(lowercase=True).corpus_score(translations, [references]).score,
        chrf=CHRF().corpus_score(translations, [references]).score,
    )


def bootstrap(
    systems: Sequence[Sequence[str]], references: Sequence[str]
) -> list[tuple[float, float, float]]:
    """Bounds of 95% and the median of the first system's BLEU, then of what each other has more than it.

    All are measured on the same samples of sentences.
    """
    counts = [
        np.concatenate(
            [count_matches([line], reference) for line, reference in zip(lines, references, strict=True)]
        )
        for lines in systems
    ]
    random = np.random.default_rng(SEED)
    samples = random.integers(len(references), size=(NUM_SAMPLES, len(references)))
    scores = np.array([[bleu(own[sample].sum(axis=0)) for sample in samples] for own in counts])
    scores[1:] -= scores[0]
    return [tuple(row) for row in np.percentile(scores, [2.5, 50, 97.5], axis=1).T.tolist()]
