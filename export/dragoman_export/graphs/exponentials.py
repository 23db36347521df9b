"""The exponentials that a softmax adds up, none of them too small to be computed quickly.

A masked score's exponential is 0 by way of numbers below the least normal one (1.2e-38), and these take a
processor some twenty times as long as others. Here no exponent is below LEAST_EXPONENT, whose exponential is
lost beside that of the largest score, which is 1: a float32 sum is the same with it and without.
"""

from torch import Tensor

from dragoman_export.graphs.attention.fixed_sums import LEAST_EXPONENT


def exponentials(scores: Tensor, is_masked: Tensor) -> Tensor:
    """exp(score - largest) over the last axis, of the same shape; exactly 0 where `is_masked` says so.

    Masked scores must be far below the others, of which there must be one.
    """
    below_largest = scores - scores.amax(dim=-1, keepdim=True)
    return below_largest.clamp(min=LEAST_EXPONENT).exp().masked_fill(is_masked, 0)
