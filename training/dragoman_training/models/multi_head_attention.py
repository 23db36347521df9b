"""Attention with several heads (Vaswani et al. 2017, section 3.2.2).

Shapes: S sentences, Q queries a sentence, T source positions, D widths, N heads, A width of a head.
"""

from torch import Tensor, nn

from dragoman_training.models.attention import Attention, ScaledDotAttention


class MultiHeadAttention(Attention):
    """Heads that attend each in a projection of its own; keys and values are projected apart.

    The context is the heads' contexts side by side. The paper's output projection is left to whoever reads
    it: what multiplies a product of matrices is one matrix.
    """

    def __init__(self, *, query_size: int, value_size: int, units: int, heads: int) -> None:
        """`units` is the width of all heads together, a multiple of `heads`."""
        super().__init__()
        assert units % heads == 0
        self.num_heads = heads
        # A key's bias would add the same to all scores of a query: none of the projections has one.
        self.query = nn.Linear(query_size, units, bias=False)
        self.key = nn.Linear(value_size, units, bias=False)
        self.value = nn.Linear(value_size, units, bias=False)
        self.head = ScaledDotAttention()

    def keys(self, states_STD: Tensor) -> Tensor:
        """[S, T, D] -> [S, N, T, A]."""
        # Contiguous, or every step would copy all of it where `forward` joins heads to sentences.
        return self._split(self.key(states_STD)).contiguous()

    def values(self, states_STD: Tensor) -> Tensor:
        """[S, T, D] -> [S, N, T, A]."""
        return self._split(self.value(states_STD)).contiguous()

    def forward(
        self,
        query_SQD: Tensor,
        keys: Tensor,
        values: Tensor,
        mask_ST: Tensor,
        window_SQT: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Returns context [S, Q, N·A] and, as weights [S, Q, T], the mean over heads."""
        query_SNQA = self._split(self.query(query_SQD))
        sizes = query_SNQA.shape[:2]
        # Heads are to the score function what sentences are: [S, N, ...] -> [S·N, ...]
        contexts, weights = self.head(
            query_SNQA.flatten(0, 1),
            keys.flatten(0, 1),
            values.flatten(0, 1),
            self._for_each_head(mask_ST),
            None if window_SQT is None else self._for_each_head(window_SQT),
        )
        context_SQNA = contexts.unflatten(0, sizes).transpose(1, 2)
        return context_SQNA.flatten(2), weights.unflatten(0, sizes).mean(dim=1)

    def _split(self, projected_SXD: Tensor) -> Tensor:
        return projected_SXD.unflatten(2, (self.num_heads, -1)).transpose(1, 2)

    def _for_each_head(self, of_sentences: Tensor) -> Tensor:
        """[S, ...] -> [S·N, ...], each sentence's N times in turn."""
        heads = of_sentences.unsqueeze(1).expand(-1, self.num_heads, *of_sentences.shape[1:])
        return heads.flatten(0, 1)
