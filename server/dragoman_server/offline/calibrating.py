"""Fits the confidence of a model to its translations of sentences that have references.

Shapes: N sentences, F features and the intercept.
"""

from collections.abc import Sequence
from dataclasses import astuple
from statistics import median

import numpy as np
import numpy.typing as npt
from dragoman_bundle.decoding import GOOD_CHRF, Confidence, evidence_of

from dragoman_server.text.translated import TranslatedText

FloatArray = npt.NDArray[np.float64]

MIN_SENTENCES = 100
"""Fewer sentences tell too little."""
_SIGNS = np.array([1, 1, -1])
"""Whether more of a feature speaks for or against a translation."""
_RIDGE = 1e-3
_STEPS = 50


class CalibrationError(ValueError):
    """A confidence can't be fitted to these sentences."""


def fit_confidence(
    sources: Sequence[str], references: Sequence[str], translated: Sequence[TranslatedText]
) -> Confidence:
    """The coefficients by which a model's confidence is right of these sentences, each of one unit.

    Raises CalibrationError for fewer than MIN_SENTENCES with a translation and a reference.
    """
    from sacrebleu.metrics.chrf import CHRF

    pairs = [
        (source, reference, one.text, one)
        for source, reference, one in zip(sources, references, translated, strict=True)
        if one.hypotheses and one.num_target_tokens and reference.strip()
    ]
    if len(pairs) < MIN_SENTENCES:
        raise CalibrationError(
            f"there are {len(pairs)} sentences with a translation and a reference, and a confidence is "
            f"fitted to {MIN_SENTENCES} at least; 500 are plenty"
        )
    length_ratio = min(
        max(median(len(reference) / len(source) for source, reference, *_ in pairs), 1e-3), 1e3
    )
    chrf = CHRF()
    is_good_N = np.array(
        [chrf.sentence_score(text, [reference]).score >= GOOD_CHRF for _, reference, text, _ in pairs]
    )
    evidence_NF = np.array(
        [
            astuple(
                evidence_of(
                    source,
                    text,
                    log_probability=one.hypotheses[0].log_probability,
                    num_tokens=one.num_target_tokens,
                    length_ratio=length_ratio,
                )
            )
            for source, _, text, one in pairs
        ]
    )
    # In units of their own spread all are held to 0 alike.
    mean_F, spread_F = evidence_NF.mean(axis=0), evidence_NF.std(axis=0)
    spread_F[spread_F < 1e-6] = np.inf
    for _ in _SIGNS:
        intercept, *weights = _fit((evidence_NF - mean_F) / spread_F, is_good_N)
        weight_F = np.array(weights) / spread_F
        # A sign that makes no sense is chance: few everyday sentences repeat anything.
        spread_F[weight_F * _SIGNS < 0] = np.inf
    log_probability, shortness, repetition = weight_F.tolist()
    return Confidence(
        intercept=float(intercept - weight_F @ mean_F),
        log_probability=log_probability,
        shortness=shortness,
        repetition=repetition,
        length_ratio=length_ratio,
        sentences=len(pairs),
    )


def _fit(features_NF: FloatArray, is_good_N: npt.NDArray[np.bool_]) -> list[float]:
    """Logistic regression by Newton's method. Targets are Platt's (1999), so that none is infinitely sure."""
    num_good, count = int(is_good_N.sum()), len(is_good_N)
    target_N = np.where(is_good_N, (num_good + 1) / (num_good + 2), 1 / (count - num_good + 2))
    features_NF = np.column_stack([np.ones(count), features_NF])
    ridge_F = np.full(features_NF.shape[1], _RIDGE)
    ridge_F[0] = 0
    weight_F = np.zeros(features_NF.shape[1])
    weight_F[0] = np.log(target_N.sum() / (count - target_N.sum()))
    for _ in range(_STEPS):
        probability_N = 0.5 * (1 + np.tanh(features_NF @ weight_F / 2))
        gradient_F = features_NF.T @ (probability_N - target_N) / count + ridge_F * weight_F
        variance_N = probability_N * (1 - probability_N)
        hessian_FF = (features_NF * variance_N[:, None]).T @ features_NF / count + np.diag(ridge_F)
        step_F = np.linalg.solve(hessian_FF, gradient_F)
        weight_F -= step_F
        if np.abs(step_F).max() < 1e-9:
            break
    return [float(weight) for weight in weight_F]
