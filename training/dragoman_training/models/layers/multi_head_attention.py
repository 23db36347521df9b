"""Attention with several heads (Vaswani et al. 2017, section 3.2.2).

Shapes: S sentences, Q queries a sentence, T source positions, D widths, H heads, A width of a head; X
sentences or rows, N positions of any kind.
"""

from torch import Tensor, nn

from dragoman_training.models.layers.attention import Attention, ScaledDotAttention


class HeadedAttention(Attention):
    """Heads that attend each in a projection of its own, whichever the projections are.

    Keys and values are [S, H, T, A].
    """

    query: nn.Linear

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.num_heads = heads
        self.heads = ScaledDotAttention()

    def forward(
        self,
        query_SQD: Tensor,
        keys: Tensor,
        values: Tensor,
        mask_ST: Tensor,
        window_SQT: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Returns context [S, Q, D] and, as weights [S, Q, T], the mean over heads."""
        context_SQD, weights_SHQT = self.by_head(query_SQD, keys, values, mask_ST, window_SQT)
        return context_SQD, weights_SHQT.mean(dim=1)

    def by_head(
        self,
        query_SQD: Tensor,
        keys: Tensor,
        values: Tensor,
        mask_ST: Tensor,
        window_SQT: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Context, and the weights of every head, [S, H, Q, T]."""
        window_S1QT = None if window_SQT is None else window_SQT.unsqueeze(1)
        context_SHQA, weights_SHQT = self.heads(
            self._queries(query_SQD), keys, values, mask_ST.unsqueeze(1), window_S1QT
        )
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

    The paper's output projection is left to the reader of the context: what multiplies a product of matrices
    is one matrix.
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
