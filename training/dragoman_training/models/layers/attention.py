"""Attention: queries look at keys and take a weighted sum of values.

Owns the interface that all families share, and the score functions. Must not know of decoders.

Shapes: S sentences, Q queries a sentence, T source positions, D widths, H heads, A the attention's or
a head's own width; X sentences or rows, N positions of any kind. To a score function heads are what sentences
are: its S may be two axes, of sentences and their heads.
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

MASKED = -1e4
"""Score of a padded position; its exponential is exactly 0 in every precision."""
Factors = Tensor | None
"""What weights are multiplied by after the softmax, if by anything."""


class Attention(nn.Module, ABC):
    """Query, keys, values and mask to context and weights.

    Keys and values are made of the encoder's states once per sentence; their shape after the sentence's axis
    is the attention's own affair.
    """

    @abstractmethod
    def keys(self, states_STD: Tensor) -> Tensor:
        """What queries are matched with: [S, T, D] -> [S, ...]."""

    def values(self, states_STD: Tensor) -> Tensor:
        """What is summed: [S, T, D] -> [S, ...]. The states themselves, unless an attention projects them."""
        return states_STD

    def keys_and_values(self, states_STD: Tensor) -> tuple[Tensor, Tensor]:
        """Both at once."""
        return self.keys(states_STD), self.values(states_STD)

    @abstractmethod
    def forward(
        self, query_SQD: Tensor, keys: Tensor, values: Tensor, mask_ST: Tensor, window_SQT: Factors = None
    ) -> tuple[Tensor, Tensor]:
        """Returns context [S, Q, D] and weights [S, Q, T]; a position that is masked weighs exactly 0.

        `mask_ST` is 0 at padding. `window_SQT`, if there is one, is 0 where a query may not look at all, and
        elsewhere a factor that its weight is multiplied by after the softmax (`Window`); it must leave each
        query at least one position within the mask.
        """

    def context(self, query_SQD: Tensor, keys: Tensor, values: Tensor, mask_ST: Tensor) -> Tensor:
        """The context alone, which may be had faster where nobody asks for the weights."""
        context_SQD, _ = self(query_SQD, keys, values, mask_ST)
        return context_SQD


class ScoredAttention(Attention):
    """A score function with the softmax and the weighted sum that all of them share."""

    @abstractmethod
    def scores(self, query_SQD: Tensor, keys_STA: Tensor) -> Tensor:
        """How well each query matches each key: [S, Q, T], before mask and softmax."""

    def forward(
        self, query_SQD: Tensor, keys: Tensor, values: Tensor, mask_ST: Tensor, window_SQT: Factors = None
    ) -> tuple[Tensor, Tensor]:
        return attend(self.scores(query_SQD, keys), values, mask_ST, window_SQT)


def attend(
    scores_SQT: Tensor, values_STD: Tensor, mask_ST: Tensor, window_SQT: Factors = None
) -> tuple[Tensor, Tensor]:
    """Softmax of the scores over source positions, and the sum of values it weighs.

    Bahdanau et al. (2015), equations 5 and 6; with a window Luong et al. (2015), equations 7 and 10.
    """
    inside_SXT = mask_ST.unsqueeze(-2) if window_SQT is None else mask_ST.unsqueeze(-2) * window_SQT
    masked = scores_SQT.masked_fill(inside_SXT == 0, MASKED)
    weights_SQT = masked.float().softmax(dim=-1)
    if window_SQT is not None:
        weights_SQT = weights_SQT * window_SQT
    return weights_SQT.to(values_STD.dtype) @ values_STD, weights_SQT


class ProductAttention(ScoredAttention):
    """Scores that are products of queries and keys."""

    def scale(self, query_SQD: Tensor) -> Tensor:
        """The queries as the keys are multiplied by them."""
        return query_SQD

    def scores(self, query_SQD: Tensor, keys_STA: Tensor) -> Tensor:
        return self.scale(query_SQD) @ keys_STA.transpose(-2, -1)


class DotAttention(ProductAttention):
    """The score q·k of Luong et al. (2015), section 3.1, `dot`: queries and states of one width."""

    def keys(self, states_STD: Tensor) -> Tensor:
        return states_STD


class ScaledDotAttention(DotAttention):
    """The score q·k / sqrt(D) of Vaswani et al. (2017), equation 1."""

    def scale(self, query_SQD: Tensor) -> Tensor:
        # Before the product, which might overflow in float16.
        return query_SQD * (1 / math.sqrt(query_SQD.shape[-1]))

    def context(self, query_SQD: Tensor, keys: Tensor, values: Tensor, mask_ST: Tensor) -> Tensor:
        if query_SQD.device.type == "cpu":
            # PyTorch computes bf16 in float32 there, or has a kernel whose gradients take as long.
            return super().context(query_SQD, keys, values, mask_ST)
        given, is_seen = (query_SQD, keys, values), mask_ST.unsqueeze(-2) != 0
        return functional.scaled_dot_product_attention(*given, attn_mask=is_seen)

    def causal(self, query_SQD: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """The context of queries that look at their own position and those before it."""
        if query_SQD.device.type == "cpu":
            size = query_SQD.shape[-2]
            seen_QT = torch.ones(size, size).tril()
            context_SQD, _ = self(query_SQD, keys, values, seen_QT[-1], seen_QT)
            return context_SQD
        return functional.scaled_dot_product_attention(query_SQD, keys, values, is_causal=True)


class GeneralAttention(ProductAttention):
    """The bilinear score q·W·k of Luong et al. (2015), section 3.1, `general`."""

    def __init__(self, *, query_size: int, value_size: int) -> None:
        super().__init__()
        self.key = nn.Linear(value_size, query_size, bias=False)

    def keys(self, states_STD: Tensor) -> Tensor:
        return self.key(states_STD)


class AdditiveAttention(ScoredAttention):
    """The additive score v·tanh(W·q + U·k + b) of Bahdanau et al. (2015), appendix A.1.2.

    It is the `concat` of Luong et al. (2015), section 3.1: their W is W and U side by side. The formula of
    neither has the bias b, which here is part of the keys.
    """

    def __init__(self, *, query_size: int, value_size: int, units: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, units, bias=False)
        self.key = nn.Linear(value_size, units)
        self.energy = nn.Linear(units, 1, bias=False)

    def keys(self, states_STD: Tensor) -> Tensor:
        return self.key(states_STD)

    def scores(self, query_SQD: Tensor, keys_STA: Tensor) -> Tensor:
        return self.match(self.query(query_SQD), keys_STA.unsqueeze(-3))

    def match(self, query_SQA: Tensor, keys_SQTA: Tensor) -> Tensor:
        """The scores of projected queries, which have keys of their own each, or all the same (Q = 1)."""
        hidden_SQTA = torch.tanh(query_SQA.unsqueeze(-2) + keys_SQTA)
        return self.energy(hidden_SQTA).squeeze(-1)


class HeadedAttention(Attention):
    """Heads that attend each in a projection of its own (Vaswani et al. 2017, section 3.2.2).

    Keys and values are [S, H, T, A].
    """

    query: nn.Linear

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.num_heads = heads
        self.heads = ScaledDotAttention()

    def forward(
        self, query_SQD: Tensor, keys: Tensor, values: Tensor, mask_ST: Tensor, window_SQT: Factors = None
    ) -> tuple[Tensor, Tensor]:
        """Returns context [S, Q, D] and, as weights [S, Q, T], the mean over heads."""
        context_SQD, weights_SHQT = self.by_head(query_SQD, keys, values, mask_ST, window_SQT)
        return context_SQD, weights_SHQT.mean(dim=1)

    def by_head(
        self, query_SQD: Tensor, keys: Tensor, values: Tensor, mask_ST: Tensor, window_SQT: Factors = None
    ) -> tuple[Tensor, Tensor]:
        """Context, and the weights of every head, [S, H, Q, T]."""
        window_S1QT = None if window_SQT is None else window_SQT.unsqueeze(1)
        query_SHQA, mask_S1T = self._queries(query_SQD), mask_ST.unsqueeze(1)
        context_SHQA, weights_SHQT = self.heads(query_SHQA, keys, values, mask_S1T, window_S1QT)
        return self.join(context_SHQA), weights_SHQT

    def context(self, query_SQD: Tensor, keys: Tensor, values: Tensor, mask_ST: Tensor) -> Tensor:
        return self.join(self.heads.context(self._queries(query_SQD), keys, values, mask_ST.unsqueeze(1)))

    def join(self, context_SHQA: Tensor) -> Tensor:
        """The heads' contexts as one: side by side, [S, Q, H·A]."""
        return join_heads(context_SHQA)

    def _queries(self, query_SQD: Tensor) -> Tensor:
        return split_heads(self.query(query_SQD), self.num_heads)


class MultiHeadAttention(HeadedAttention):
    """Queries, keys and values of any widths, each with a projection of its own.

    The paper's output projection is left to the reader of the context: two matrices in a row are one.
    """

    def __init__(self, *, query_size: int, value_size: int, units: int, heads: int) -> None:
        """`units` is the width of all heads together, a multiple of `heads`."""
        super().__init__(heads)
        assert units % heads == 0
        # A key's bias would add the same to all scores of a query: none of the projections has one.
        self.query = nn.Linear(query_size, units, bias=False)
        self.key = nn.Linear(value_size, units, bias=False)
        self.value = nn.Linear(value_size, units, bias=False)

    def keys(self, states_STD: Tensor) -> Tensor:
        # Contiguous, or every step would copy all of it to multiply the matrices of all heads at once.
        return split_heads(self.key(states_STD), self.num_heads).contiguous()

    def values(self, states_STD: Tensor) -> Tensor:
        return split_heads(self.value(states_STD), self.num_heads).contiguous()


def split_heads(x_XND: Tensor, heads: int) -> Tensor:
    """[X, N, D] -> [X, H, N, A]."""
    return x_XND.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x_XHNA: Tensor) -> Tensor:
    """[X, H, N, A] -> [X, N, D]."""
    return x_XHNA.transpose(1, 2).flatten(2)
