"""The diagonal of Dyer et al. 2013: model 2's positions from two numbers, how likely NULL is and how steep λ.

Shapes: H distinct shapes, Q positions: of each shape a matrix [m, l + 1], NULL first.
"""

from dataclasses import dataclass

import numpy as np

from dragoman_training.alignment.lexicon import Numbers
from dragoman_training.alignment.models.ibm2 import Shapes

MIN_TENSION, MAX_TENSION = 0.0, 50.0
NUM_STEPS = 8
"""Newton's steps of the maximisation."""


@dataclass(frozen=True, kw_only=True)
class Diagonal:
    """Section 2 of the paper."""

    null: float = 0.08
    """p0."""
    tension: float = 4.0
    """λ."""

    def positions(self, shapes: Shapes) -> Numbers:
        """q(i|j,l,m), the δ of the paper. [Q]"""
        distance_Q, null_Q = _distances(shapes)
        return np.where(null_Q, self.null, (1 - self.null) * _share(shapes, distance_Q, null_Q, self.tension))

    def estimate(self, shapes: Shapes, count_Q: Numbers) -> "Diagonal":
        """Both numbers from expected counts of positions: the likeliest, as λ's likelihood is concave."""
        distance_Q, null_Q = _distances(shapes)
        row_Q = shapes.rows_Q()
        linked_Q = np.where(null_Q, 0, count_Q)
        linked = np.bincount(row_Q, weights=linked_Q)
        observed = float((linked_Q * distance_Q).sum())
        tension = self.tension
        for _ in range(NUM_STEPS):
            share_Q = _share(shapes, distance_Q, null_Q, tension)
            mean = np.bincount(row_Q, weights=share_Q * distance_Q)
            square = np.bincount(row_Q, weights=share_Q * distance_Q**2)
            slope = float((linked * mean).sum()) - observed
            bend = float((linked * (square - mean**2)).sum())
            if bend <= 0:
                break
            tension = min(max(tension + slope / bend, MIN_TENSION), MAX_TENSION)
        total = float(count_Q.sum())
        return Diagonal(null=float(count_Q[null_Q].sum()) / total if total else self.null, tension=tension)


def _distances(shapes: Shapes) -> tuple[Numbers, np.ndarray]:
    """|i / l - j / m| of each position (eq. 1 of the paper with its sign turned), and which are NULL."""
    distances, nulls = [np.empty(0)], [np.empty(0, bool)]
    for size, length in zip(shapes.source_size_H.tolist(), shapes.target_size_H.tolist(), strict=True):
        i, j = np.arange(size + 1), np.arange(1, length + 1)
        distances.append(np.abs(i[None] / max(size, 1) - j[:, None] / length).ravel())
        nulls.append(np.tile(i == 0, length))
    return np.concatenate(distances), np.concatenate(nulls)


def _share(shapes: Shapes, distance_Q: Numbers, null_Q: np.ndarray, tension: float) -> Numbers:
    """exp(-λ distance), normalised over the source positions but NULL."""
    row_Q = shapes.rows_Q()
    weight_Q = np.where(null_Q, 0, np.exp(-tension * distance_Q))
    return weight_Q / np.maximum(np.bincount(row_Q, weights=weight_Q), 1e-300)[row_Q]
