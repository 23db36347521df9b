"""Attention of a text's continuations: to what the text was begun with, and to what each has added by itself.

Shapes: S sentences, K beam, R = S·K rows, T positions of the beginning, N positions of a row's own, H units,
A attention units.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman_training.models.layers.attention import MASKED, AdditiveAttention


@dataclass(frozen=True, kw_only=True)
class Beginning:
    """What a sentence's rows have in common."""

    keys_STA: Tensor
    values_STH: Tensor
    seen_SKT: Tensor
    """Bool: what each row looks at."""


@dataclass(frozen=True, kw_only=True)
class OwnPast:
    """What each row has added. The last position is the one that looks, and does not see itself."""

    keys_RNA: Tensor
    values_RNH: Tensor
    num_seen_R: Tensor
    """How many of the positions just before the last one each row looks at; what is before them may be
    anything."""


class ContinuingAttention(AdditiveAttention):
    """The additive score, over both at once: each row must see something of one of the two."""

    def over_both(
        self, query_SKH: Tensor, beginning: Beginning, own: OwnPast
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Context [S, K, H], and the weights [S, K, T] and [S, K, N], which together add up to 1."""
        scores_SKX, seen_SKX = self.scores_of_both(query_SKH, beginning, own)
        weights_SKX = scores_SKX.masked_fill(~seen_SKX, MASKED).float().softmax(dim=-1)
        weights_SKT, weights_SKN = split(weights_SKX, beginning)
        values_SKNH = own.values_RNH.unflatten(0, query_SKH.shape[:2])
        context_SKH = weights_SKT.to(values_SKNH.dtype) @ beginning.values_STH
        own_SK1H = weights_SKN.to(values_SKNH.dtype).unsqueeze(2) @ values_SKNH
        return context_SKH + own_SK1H.squeeze(2), weights_SKT, weights_SKN

    def scores_of_both(self, query_SKH: Tensor, beginning: Beginning, own: OwnPast) -> tuple[Tensor, Tensor]:
        """The scores before the softmax, and which are seen: [S, K, T + N] twice, the beginning first."""
        query_SKA = self.query(query_SKH)
        scores_SKT = self.match(query_SKA, beginning.keys_STA.unsqueeze(1))
        scores_SKN = self.match(query_SKA, own.keys_RNA.unflatten(0, query_SKH.shape[:2]))
        last = own.keys_RNA.shape[1] - 1
        distance_N = last - torch.arange(last + 1, device=query_SKH.device)
        seen_RN = (distance_N > 0) & (distance_N <= own.num_seen_R.unsqueeze(1))
        seen_SKX = torch.cat([beginning.seen_SKT, seen_RN.unflatten(0, query_SKH.shape[:2])], dim=-1)
        return torch.cat([scores_SKT, scores_SKN], dim=-1), seen_SKX


def split(both_SKX: Tensor, beginning: Beginning) -> tuple[Tensor, Tensor]:
    """The beginning's part and the own one: [S, K, T] and [S, K, N]."""
    positions = beginning.keys_STA.shape[1]
    return both_SKX[..., :positions], both_SKX[..., positions:]
