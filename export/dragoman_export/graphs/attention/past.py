"""Attention over a past padded on the left, with sums that depend neither on padding nor on neighbours.

Of a Transformer in an ensemble, which is traced; `fixed_sums` writes the same for one alone.

The same care as in `over_source`, and more: a product cuts a long sum into blocks, 256 positions each for
heads 64 wide, and exact zeros before what counts would move the cuts. So the past of every row is brought to
begin at the row's own first position, and ends in zeros, which are harmless. Heads are at most 128 wide for
all of this to hold: the inner sum of a score must be one block.

Shapes: R rows, H heads, Q queries, N positions attended to, A width of a head.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from dragoman_export.graphs.attention.over_source import AttentionGraph


class PastAttentionGraph(AttentionGraph):
    """Does what PastAttention does, with sums in a fixed order."""

    def past(self, query_RHQA: Tensor, keys_RHNA: Tensor, values_RHNA: Tensor, mask_RN: Tensor) -> Tensor:
        """The context of rows whose last positions count, each its own number of them: [R, H, Q, A]."""
        length_R1 = mask_RN.sum(dim=1, keepdim=True).to(torch.int64)
        place_R1N = own_places(length_R1, mask_RN.shape[1]).unsqueeze(1)
        scores_RHNQ = at_places(self.scores(query_RHQA, keys_RHNA).transpose(2, 3), place_R1N)
        values_RHNA = at_places(values_RHNA, place_R1N)
        # Behind its end a row has its last position, with weight 0.
        inside_RN = (torch.arange(mask_RN.shape[1], device=mask_RN.device) < length_R1).float()
        context_RHQA, _ = self.attend(scores_RHNQ.transpose(2, 3), values_RHNA, inside_RN.unsqueeze(1))
        return context_RHQA


def own_places(length_R1: Tensor, positions: int) -> Tensor:
    """[R, N]: where each row's so many last positions stand, in order, then the last over and over."""
    position_N = torch.arange(positions, device=length_R1.device)
    return (position_N + positions - length_R1).clamp(max=positions - 1)


def at_places(values_XNA: Tensor, place_XN: Tensor) -> Tensor:
    """Each row's values, [..., N, A], at its places, [..., N]."""
    *rows, positions, _ = values_XNA.shape
    first_X1 = (torch.arange(math.prod(rows), device=place_XN.device) * positions).view(*rows, 1)
    return functional.embedding(first_X1 + place_XN, values_XNA.flatten(0, -2))
