"""Weights as int8 with a scale for each output.

Shapes: K inputs, N outputs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LARGEST = 63
"""Codes run from -63 to 63, the same on both sides of 0.

x86 without VNNI adds two products of an unsigned and a signed byte in 16 bits, and saturates. 2 · 255 · 63
fits; 2 · 255 · 127 does not, and makes sums that are silently wrong. Codes that a file of Firefox has reach
127 all the same: it was trained with them, and its own engine has these sums.
"""


@dataclass(frozen=True)
class Int8Weight:
    """`codes` times `scale`, along the axis of outputs, is nearly the weight."""

    codes: NDArray[np.int8]
    scale_N: NDArray[np.float32]


def quantize_weight(weight: NDArray[np.float32], *, output_axis: int) -> Int8Weight:
    """Rounds the weights of each output to the 127 multiples of its scale that reach its largest weight.

    `weight` is [K, N], or [N, K] with `output_axis` 0.
    """
    largest = np.abs(weight).max(axis=1 - output_axis, keepdims=True)
    scale = np.where(largest > 0, largest / LARGEST, 1).astype(np.float32)
    return Int8Weight(np.rint(weight / scale).astype(np.int8), scale.reshape(-1))
