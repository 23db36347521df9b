"""Attention over a past padded on the left, with sums that depend neither on padding nor on neighbours.

The same care as in `attention`, and more: a product cuts a long sum into blocks, 256 positions each for
heads 64 wide, and exact zeros before what counts would move the cuts. So the past of every row is brought to
begin at the row's own first position, and ends in zeros, which are harmless. Heads are at most 128 wide for
all of this to hold: the inner sum of a score must be one block.

Shapes: R rows, H heads, Q queries, N positions attended to, A width of a head.
"""

import torch
from torch import Tensor
from torch.nn import functional

from dragoman_export.attention import AttentionGraph

MAX_HEAD_WIDTH = 128


def check_head_width(width: int, heads: int) -> None:
    """Raises ValueError for heads so wide that a translation could depend on its neighbours."""
    if width // heads > MAX_HEAD_WIDTH:
        raise ValueError(
            f"its {heads} heads are {width // heads} wide, and beyond {MAX_HEAD_WIDTH} a translation may "
            "depend on what shares its batch; "
            f"train it with model.heads of at least {-(-width // MAX_HEAD_WIDTH)}"
        )


class PastAttentionGraph(AttentionGraph):
    """Does what PastAttention does, with sums in a fixed order."""

    def past(self, query_RHQA: Tensor, keys_RHNA: Tensor, values_RHNA: Tensor, mask_RN: Tensor) -> Tensor:
        """The context of rows whose last positions count, each its own number of them: [R, H, Q, A]."""
        rows, heads, positions, _ = values_RHNA.shape
        position_N = torch.arange(positions, device=mask_RN.device)
        length_R1 = mask_RN.sum(dim=1, keepdim=True).to(torch.int64)
        # Beyond its end a row has its last position, over and over, with weight 0.
        own_RN = (position_N + positions - length_R1).clamp(max=positions - 1)
        first_RH1 = (torch.arange(rows * heads, device=mask_RN.device) * positions).view(rows, heads, 1)
        place_RHN = first_RH1 + own_RN.unsqueeze(1)
        scores_RHNQ = self.scores(query_RHQA, keys_RHNA).transpose(2, 3)
        scores_RHNQ = functional.embedding(place_RHN, scores_RHNQ.flatten(0, 2))
        values_RHNA = functional.embedding(place_RHN, values_RHNA.flatten(0, 2))
        inside_RN = (position_N < length_R1).float()
        context_RHQA, _ = self.attend(scores_RHNQ.transpose(2, 3), values_RHNA, inside_RN.unsqueeze(1))
        return context_RHQA
