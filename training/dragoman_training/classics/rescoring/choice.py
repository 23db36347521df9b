"""Weights of what the members say, tuned on lists of translations, and the translations chosen by them.

Shapes: S sources, F features.
"""

from collections.abc import Sequence

import numpy as np

from dragoman_training.classics.rescoring.members import FEATURES, Listed
from dragoman_training.classics.smt.tuning.bleu import count_matches
from dragoman_training.classics.smt.tuning.line_search import Numbers
from dragoman_training.classics.smt.tuning.mert import Candidates, tune

START = {"direct": 1.0, "reverse": 0.3, "language_model": 0.1, "tokens": 0.1}
NUM_STARTS = 10


def tune_weights(lists: Sequence[Sequence[Listed]], references: Sequence[str], *, seed: int) -> Numbers:
    """The weights by which the translations chosen have the best BLEU (Och 2003). [F]

    A member that says nothing has the weight 0.
    """
    candidates = Candidates.of(
        [np.stack([one.features_F for one in own]) for own in lists],
        [
            count_matches([one.text for one in own], reference)
            for own, reference in zip(lists, references, strict=True)
        ],
    )
    used_F = candidates.features_NF.any(axis=0)
    start_F = np.array([START[name] for name in FEATURES]) * used_F
    weights_F, _ = tune(candidates, start_F, num_starts=NUM_STARTS, random=np.random.default_rng(seed))
    return weights_F * used_F + 0.0  # No -0.


def choose(lists: Sequence[Sequence[Listed]], weights_F: Numbers) -> list[str]:
    """Of each source the translation with the largest weighted sum."""
    return [max(own, key=lambda one: float(one.features_F @ weights_F)).text for own in lists]
