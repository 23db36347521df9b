"""Attention whose sums do not depend on how far a batch is padded.

An int8 graph rounds what attention returns, and a rounding turns a difference of 1e-7 into one of 1e-3. So
a sentence must get the same bits whatever its neighbours' lengths:
- A softmax may group its sum by the length it is given. Here the sum is a matrix product with the mask, whose
  order over positions is fixed, and in which a padded position adds an exact 0.
- A matrix product may split its inner axis by how many columns it has. So scores are computed with the source
  positions as rows and the beam, which is the same for all of a lane, as columns.
- A product with a vector is another routine that groups rows by four. So a spare query, all zeros, keeps
  every product one of matrices at beam 1 as well.

Shapes: S sentences, or sentences and their heads; Q queries a sentence, T source positions, D widths.
"""

import torch
from torch import Tensor
from torch.nn import functional

from dragoman_export.graphs.exponentials import exponentials
from dragoman_training.models.layers.attention import MASKED, Attention, ProductAttention, ScoredAttention


class AttentionGraph(Attention):
    """Does what the given attention does, with sums in a fixed order."""

    def __init__(self, attention: ScoredAttention) -> None:
        super().__init__()
        self.attention = attention

    def keys(self, states_STD: Tensor) -> Tensor:
        return self.attention.keys(states_STD)

    def values(self, states_STD: Tensor) -> Tensor:
        return self.attention.values(states_STD)

    def forward(
        self,
        query_SQD: Tensor,
        keys: Tensor,
        values: Tensor,
        mask_ST: Tensor,
        window_SQT: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        return self.attend(self.scores(query_SQD, keys), values, mask_ST, window_SQT)

    def scores(self, query_SQD: Tensor, keys_STA: Tensor) -> Tensor:
        """How well each query matches each key: [S, Q, T], before mask and softmax."""
        if isinstance(self.attention, ProductAttention):
            queries = query_SQD.shape[-2]
            scores_STQ = keys_STA @ with_spare(self.attention.scale(query_SQD)).transpose(-2, -1)
            return scores_STQ[..., :queries].transpose(-2, -1)
        return self.attention.scores(query_SQD, keys_STA)

    def attend(
        self, scores_SQT: Tensor, values_STD: Tensor, mask_ST: Tensor, window_SQT: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Softmax of the scores over source positions, and the sum of values it weighs."""
        inside_SXT = mask_ST.unsqueeze(-2) if window_SQT is None else mask_ST.unsqueeze(-2) * window_SQT
        is_masked_SXT = inside_SXT == 0
        powers_SQT = exponentials(scores_SQT.float().masked_fill(is_masked_SXT, MASKED), is_masked_SXT)
        # The sum over positions in two columns, of which one is read: (S, T) -> (S, T, 2)
        mask_ST2 = torch.stack([mask_ST.float()] * 2, dim=-1)
        sums_SQ1 = product(powers_SQT, mask_ST2, width=1)
        weights_SQT = powers_SQT / sums_SQ1
        if window_SQT is not None:
            weights_SQT = weights_SQT * window_SQT
        return product(weights_SQT.to(values_STD.dtype), values_STD), weights_SQT


def with_spare(rows_SQX: Tensor) -> Tensor:
    """Adds a query of zeros: [S, Q, X] -> [S, Q + 1, X]."""
    return functional.pad(rows_SQX, (0, 0, 0, 1))


def product(rows_SQX: Tensor, columns_SXY: Tensor, *, width: int | None = None) -> Tensor:
    """[S, Q, X] by [S, X, Y] with a spare query: [S, Q, Y], or of Y the first `width`."""
    return (with_spare(rows_SQX) @ columns_SXY)[..., : rows_SQX.shape[-2], :width]
