"""Whether the rows of an activation may share a step, and which.

Shapes: N rows, K inputs of the product that they go into.
"""

import numpy as np
from numpy.typing import NDArray

from dragoman_export.int8.graph import LARGEST, SMALLEST_MAXIMUM

MAX_NOISE = 4.0
"""How many times the noise power of steps of rows' own a shared step may have.

Weights are rounded to half as many codes as activations, so that their noise has four times the power: the
sum of both is at most eight fifths of what it was.
"""
MARGIN = 1.1
"""How far beyond the largest that was seen the codes reach."""


def shared_step(rows_NK: NDArray[np.float32]) -> float | None:
    """The step in which all of these rows may count; None where some are too small beside others for that."""
    largest_N = np.abs(rows_NK).max(axis=1)
    step = MARGIN * float(largest_N.max()) / LARGEST
    if step <= SMALLEST_MAXIMUM:
        return None
    own_N = np.maximum(largest_N, SMALLEST_MAXIMUM) / LARGEST
    # Each row counts alike, however large it is: a layer's norm makes all of one size, or will.
    power_N = np.maximum(np.square(rows_NK).mean(axis=1), SMALLEST_MAXIMUM)
    noise, own_noise = (
        float((_noise(rows_NK, steps) / power_N).mean()) for steps in (np.full_like(own_N, step), own_N)
    )
    return step if noise <= MAX_NOISE * own_noise else None


def _noise(rows_NK: NDArray[np.float32], step_N: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean square of what rounding to these steps changes in each row."""
    steps_N1 = step_N[:, None]
    rounded_NK = np.rint(rows_NK / steps_N1) * steps_N1
    noise_N: NDArray[np.float32] = np.square(rounded_NK - rows_NK).mean(axis=1)
    return noise_N
