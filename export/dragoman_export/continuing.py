"""Attention of continuations, with sums that depend neither on padding nor on neighbours.

The same care as in `attention` and `past`. What a row sees of its text's beginning and what it sees of its
own past are summed by products of their own, and the two sums are added. The own past is moved to begin at
the first position that the row sees. All are held against the largest score of both, the same in any order.

Shapes: S sentences, K beam, R = S·K rows, T positions of the beginning, N positions of a row's own, H units,
X sentences or rows, Q queries each, P positions.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman_export.attention import with_spare
from dragoman_export.exponentials import exponentials
from dragoman_training.models.attention import MASKED
from dragoman_training.models.continuing_attention import Beginning, ContinuingAttention, OwnPast, split


class ContinuingAttentionGraph(ContinuingAttention):
    """Does what the given attention does, with sums in a fixed order."""

    def __init__(self, attention: ContinuingAttention) -> None:
        # It has the parameters of the given one, and makes none.
        nn.Module.__init__(self)
        self.query, self.key, self.energy = attention.query, attention.key, attention.energy

    def over_both(
        self, query_SKH: Tensor, beginning: Beginning, own: OwnPast
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Context [S, K, H], and the weights [S, K, T] and [S, K, N], which together add up to 1."""
        scores_SKX, seen_SKX = self.scores_of_both(query_SKH, beginning, own)
        powers_SKX = exponentials(scores_SKX.float().masked_fill(~seen_SKX, MASKED), ~seen_SKX)
        powers_SKT, powers_SKN = split(powers_SKX, beginning)
        moved_RN, values_RNH = _first_seen_first(powers_SKN.flatten(0, 1), own)
        moved_R1N = moved_RN.unsqueeze(1)
        total_SK1 = _sums(powers_SKT) + _sums(moved_R1N).view_as(powers_SKT[..., :1])
        weights_SKT, weights_SKN = split(powers_SKX / total_SK1, beginning)
        context_SKH = _weighed(weights_SKT, beginning.values_STH)
        own_R1H = _weighed(moved_R1N / total_SK1.view(-1, 1, 1), values_RNH)
        return context_SKH + own_R1H.view_as(context_SKH), weights_SKT, weights_SKN


def _first_seen_first(powers_RN: Tensor, own: OwnPast) -> tuple[Tensor, Tensor]:
    """Powers and values of each row from the first position on that it sees.

    Behind the last one that it sees is its own, over and over, whose power is 0.
    """
    rows, positions = powers_RN.shape
    position_N = torch.arange(positions, device=powers_RN.device)
    place_RN = (position_N + (positions - 1) - own.num_seen_R.unsqueeze(1)).clamp(max=positions - 1)
    first_R1 = (torch.arange(rows, device=powers_RN.device) * positions).unsqueeze(1)
    values_RNH = functional.embedding(first_R1 + place_RN, own.values_RNH.flatten(0, 1))
    return powers_RN.gather(1, place_RN), values_RNH


def _sums(powers_XQP: Tensor) -> Tensor:
    """[X, Q, 1]: as a product with two columns of ones, of which one is read."""
    sentences, queries, positions = powers_XQP.shape
    ones_XP2 = powers_XQP.new_ones(sentences, positions, 2)
    return (with_spare(powers_XQP) @ ones_XP2)[:, :queries, :1]


def _weighed(weights_XQP: Tensor, values_XPH: Tensor) -> Tensor:
    """[X, Q, H]: the values' sums."""
    return (with_spare(weights_XQP.to(values_XPH.dtype)) @ values_XPH)[:, : weights_XQP.shape[1]]
