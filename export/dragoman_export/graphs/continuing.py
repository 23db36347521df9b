"""Attention of continuations, with sums that depend neither on padding nor on neighbours.

The same care as in `attention` and `past`. What a row sees of its text's beginning and what it sees of its
own past are summed by products of their own, and the two sums are added. The own past is moved to begin at
the first position that the row sees. All are held against the largest score of both, the same in any order.

Shapes: S sentences, K beam, R = S·K rows, T positions of the beginning, N positions of a row's own, H units,
X sentences or rows, Q queries each, P positions.
"""

from torch import Tensor, nn

from dragoman_export.graphs.attention.over_source import product
from dragoman_export.graphs.attention.past import at_places, own_places
from dragoman_export.graphs.exponentials import exponentials
from dragoman_training.models.layers.attention import MASKED
from dragoman_training.models.layers.continuing_attention import (
    Beginning,
    ContinuingAttention,
    OwnPast,
    split,
)


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
        # Behind the last position that a row sees is its own, whose power is 0.
        place_RN = own_places(own.num_seen_R.unsqueeze(1) + 1, powers_SKN.shape[-1])
        moved_R1N = powers_SKN.flatten(0, 1).gather(1, place_RN).unsqueeze(1)
        total_SK1 = _sums(powers_SKT) + _sums(moved_R1N).view_as(powers_SKT[..., :1])
        weights_SKT, weights_SKN = split(powers_SKX / total_SK1, beginning)
        context_SKH = product(weights_SKT.to(beginning.values_STH.dtype), beginning.values_STH)
        own_weights_R1N = (moved_R1N / total_SK1.view(-1, 1, 1)).to(own.values_RNH.dtype)
        own_R1H = product(own_weights_R1N, at_places(own.values_RNH, place_RN))
        return context_SKH + own_R1H.view_as(context_SKH), weights_SKT, weights_SKN


def _sums(powers_XQP: Tensor) -> Tensor:
    """[X, Q, 1]: as a product with two columns of ones, of which one is read."""
    sentences, _, positions = powers_XQP.shape
    return product(powers_XQP, powers_XQP.new_ones(sentences, positions, 2), width=1)
