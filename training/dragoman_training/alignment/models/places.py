"""d(j|i,l,m), model 3's distortion (Brown et al. 1993, section 4.4): a table for each pair of lengths.

Shapes: H distinct pairs of lengths, Q positions: of each pair a matrix [m, l + 1], NULL first.
"""

import numpy as np
from numpy.typing import NDArray

from dragoman_training.alignment.lexicon import Numbers
from dragoman_training.alignment.models.ibm2 import Shapes

TENSION = 8.0
"""How steeply a place without counts falls off beside the diagonal."""


def estimate_places(shapes: Shapes, count_Q: Numbers, prior: float) -> Numbers:
    """d from expected counts and prior ones along the diagonal, as many of each position. NULL's are 1."""
    column_Q, null_Q, distance_Q = _columns(shapes)
    diagonal_Q = _normalize(np.exp(-TENSION * distance_Q), column_Q)
    place_Q = _normalize(count_Q + prior * diagonal_Q, column_Q) if prior else _normalize(count_Q, column_Q)
    place_Q[null_Q] = 1.0
    return place_Q


def diagonal_places(shapes: Shapes) -> Numbers:
    """d before anything is counted."""
    column_Q, null_Q, distance_Q = _columns(shapes)
    place_Q = _normalize(np.exp(-TENSION * distance_Q), column_Q)
    place_Q[null_Q] = 1.0
    return place_Q


def _normalize(value_Q: Numbers, column_Q: NDArray[np.int64]) -> Numbers:
    total = np.bincount(column_Q, weights=value_Q)
    result: Numbers = value_Q / np.maximum(total, 1e-300)[column_Q]
    return result


def _columns(shapes: Shapes) -> tuple[NDArray[np.int64], NDArray[np.bool_], Numbers]:
    """The source position of each place, numbered over all shapes, which are NULL's, and |i / l - j / m|."""
    columns, nulls, distances = [np.empty(0, np.int64)], [np.empty(0, bool)], [np.empty(0)]
    first = 0
    for size, length in zip(shapes.source_size_H.tolist(), shapes.target_size_H.tolist(), strict=True):
        i, j = np.arange(size + 1), np.arange(1, length + 1)
        columns.append(np.tile(first + i, length))
        nulls.append(np.tile(i == 0, length))
        distances.append(np.abs(i[None] / max(size, 1) - j[:, None] / length).ravel())
        first += size + 1
    return np.concatenate(columns), np.concatenate(nulls), np.concatenate(distances)
