"""Attention of traced models, with sums that depend neither on padding nor on neighbours.

An int8 graph rounds what attention returns, and a rounding turns a difference of 1e-7 into one of 1e-3. So
a sentence must get the same bits whatever its neighbours' lengths:
- A softmax may group its sum by the length it is given. Here the sum is a matrix product with the mask, whose
  order over positions is fixed, and in which a padded position adds an exact 0.
- A matrix product may split its inner axis by how many columns it has. So scores are computed with the source
  positions as rows and the beam, which is the same for all of a lane, as columns.
- A product with a vector is another routine that groups rows by four. So a spare query, all zeros, keeps
  every product one of matrices at beam 1 as well.
- A product cuts a long sum into blocks, 256 positions each for heads 64 wide, and exact zeros before what
  counts would move the cuts. So each row's past is brought to begin at the row's own first position, and ends
  in zeros, which are harmless. Heads are at most 128 wide for all of this to hold: the inner sum of a score
  must be one block.

Shapes: S sentences, K beam, R = S·K rows, X sentences or rows, H heads or decoder units, Q queries each,
T source positions or those of a text's beginning, N positions attended to, A width of a head, D widths.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman_export.graphs.attention import LEAST_EXPONENT
from dragoman_training.models.language_model import Beginning, ContinuingAttention, OwnPast, split
from dragoman_training.models.layers.attention import MASKED, Attention, ProductAttention, ScoredAttention
from dragoman_training.models.luong import PredictedWindow, Window
from dragoman_training.models.seq2seq import sentence_length


def exponentials(scores: Tensor, is_masked: Tensor) -> Tensor:
    """exp(score - largest) over the last axis, of the same shape; exactly 0 where `is_masked` says so.

    Masked scores must be far below the others, of which there must be one.
    """
    below_largest = scores - scores.amax(dim=-1, keepdim=True)
    return below_largest.clamp(min=LEAST_EXPONENT).exp().masked_fill(is_masked, 0)


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


class PastAttentionGraph(AttentionGraph):
    """Does what PastAttention does, with sums in a fixed order, for a Transformer in an ensemble.

    The graph of one alone is written (`attention.Past`).
    """

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


class ContinuingAttentionGraph(ContinuingAttention):
    """Does what the given attention does, with sums in a fixed order.

    What a row sees of its text's beginning and what it sees of its own past are summed by products of their
    own, and the two sums are added. All are held against the largest score of both, the same in any order.
    """

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


class PredictedWindowGraph(PredictedWindow):
    """Does what the given window does, row by row, in products that keep the names of their weights.

    An int8 graph knows by these names what has to stay in fp32. A product of rows [R, H] is one node that
    reads its weight as it is stored; of rows [S, Q, H], the exporter would store a transposed copy under a
    name that says nothing.
    """

    def __init__(self, window: PredictedWindow) -> None:
        # As any window: it has the parameters of the given one, and makes none.
        Window.__init__(self, window.reach)
        self.hidden = window.hidden
        # The second output is not read: a product with a vector may sum in another order for one row than for
        # many (`PredictedWindow.centre`).
        self.direction_2H = nn.Parameter(
            functional.pad(window.direction.detach().unsqueeze(0), (0, 0, 0, 1)), requires_grad=False
        )

    def centre(self, query_SQH: Tensor, mask_ST: Tensor, position_SQ: Tensor) -> Tensor:
        hidden_RH = self.hidden(query_SQH.flatten(0, 1)).tanh()
        logit_R = functional.linear(hidden_RH, self.direction_2H)[:, 0]
        logit_SQ = logit_R.unflatten(0, query_SQH.shape[:2])
        return sentence_length(mask_ST) * logit_SQ.float().sigmoid()
