"""Scaled dot-product attention in heads, as the Transformer uses it (Vaswani et al. 2017, section 3.2).

Shapes: X sentences or rows, H heads, Q queries, N positions attended to, A width of a head, D = H · A,
S sentences, K beam, R = S·K rows, T source positions, U target positions.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman_training.models.attention import MASKED


class Heads(nn.Module):
    """softmax(q·kᵀ / √A)·v for every head (equation 1); holds no parameters."""

    def forward(
        self, query_XHQA: Tensor, keys_XHNA: Tensor, values_XHNA: Tensor, mask_XN: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns context [X, H, Q, A] and weights [X, H, Q, N]; a masked position weighs exactly 0."""
        scores_XHQN = scaled(query_XHQA) @ keys_XHNA.transpose(2, 3)
        masked_XHQN = scores_XHQN.float().masked_fill(mask_XN[:, None, None] == 0, MASKED)
        weights_XHQN = masked_XHQN.softmax(dim=-1)
        return weights_XHQN.to(values_XHNA.dtype) @ values_XHNA, weights_XHQN

    def context(self, query_XHQA: Tensor, keys_XHNA: Tensor, values_XHNA: Tensor, mask_XN: Tensor) -> Tensor:
        """The context alone, which PyTorch has a kernel for."""
        return functional.scaled_dot_product_attention(
            query_XHQA, keys_XHNA, values_XHNA, attn_mask=mask_XN[:, None, None] != 0
        )

    def past(self, query_XHQA: Tensor, keys_XHNA: Tensor, values_XHNA: Tensor, mask_XN: Tensor) -> Tensor:
        """The same of rows whose last positions count, each its own number of them."""
        return self.context(query_XHQA, keys_XHNA, values_XHNA, mask_XN)


class SelfAttention(nn.Module):
    """Every position attends to the positions of its own sequence."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.num_heads = heads
        self.input = projection(width, 3)
        self.heads = Heads()
        self.output = projection(width, 1)

    def forward(self, inputs_STD: Tensor, mask_ST: Tensor) -> Tensor:
        """All positions at once, each sees all that are not masked: [S, T, D] -> [S, T, D]."""
        query, keys, values = self._project(inputs_STD)
        return self.output(join_heads(self.heads.context(query, keys, values, mask_ST)))

    def causal(self, inputs_SUD: Tensor) -> Tensor:
        """All positions at once, each sees itself and those before it: [S, U, D] -> [S, U, D]."""
        query, keys, values = self._project(inputs_SUD)
        context = functional.scaled_dot_product_attention(query, keys, values, is_causal=True)
        return self.output(join_heads(context))

    def step(
        self, inputs_SKD: Tensor, keys_RHUA: Tensor, values_RHUA: Tensor, mask_RN: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One more position of every row, which sees itself and the U of its past that are not masked.

        `mask_RN` has N = U + 1 positions. Returns [S, K, D] and keys and values with the new position behind.
        """
        rows_R1D = inputs_SKD.flatten(0, 1).unsqueeze(1)
        query, new_keys, new_values = self._project(rows_R1D)
        keys = torch.cat([keys_RHUA, new_keys], dim=2)
        values = torch.cat([values_RHUA, new_values], dim=2)
        context_RH1A = self.heads.past(query, keys, values, mask_RN)
        return self.output(join_heads(context_RH1A)).view(inputs_SKD.shape), keys, values

    def _project(self, inputs_XND: Tensor) -> list[Tensor]:
        return [split_heads(part, self.num_heads) for part in self.input(inputs_XND).chunk(3, dim=-1)]


class CrossAttention(nn.Module):
    """Every target position attends to the source."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.num_heads = heads
        self.query = projection(width, 1)
        self.memory = projection(width, 2)
        self.heads = Heads()
        self.output = projection(width, 1)

    def keys_and_values(self, source_STD: Tensor) -> tuple[Tensor, Tensor]:
        """What is the same for all target positions of a sentence: [S, H, T, A] twice."""
        keys, values = (
            split_heads(part, self.num_heads) for part in self.memory(source_STD).chunk(2, dim=-1)
        )
        return keys, values

    def forward(self, inputs_SQD: Tensor, keys_SHTA: Tensor, values_SHTA: Tensor, mask_ST: Tensor) -> Tensor:
        """[S, Q, D] -> [S, Q, D]."""
        query = split_heads(self.query(inputs_SQD), self.num_heads)
        return self.output(join_heads(self.heads.context(query, keys_SHTA, values_SHTA, mask_ST)))

    def weighted(
        self, inputs_SQD: Tensor, keys_SHTA: Tensor, values_SHTA: Tensor, mask_ST: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The same with the weights of every head, [S, H, Q, T]."""
        query = split_heads(self.query(inputs_SQD), self.num_heads)
        context, weights_SHQT = self.heads(query, keys_SHTA, values_SHTA, mask_ST)
        return self.output(join_heads(context)), weights_SHQT


def scaled(query_XHQA: Tensor) -> Tensor:
    """Queries divided by √A, before the product: in float16 the product itself might overflow."""
    return query_XHQA * (1 / math.sqrt(query_XHQA.shape[-1]))


def projection(width: int, parts: int) -> nn.Linear:
    """D -> parts · D, every part begun by itself as Glorot and Bengio (2010) do, biases at 0."""
    linear = nn.Linear(width, parts * width)
    for part in linear.weight.chunk(parts):
        nn.init.xavier_uniform_(part)
    nn.init.zeros_(linear.bias)
    return linear


def split_heads(x_XND: Tensor, heads: int) -> Tensor:
    """[X, N, D] -> [X, H, N, A]."""
    return x_XND.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(x_XHNA: Tensor) -> Tensor:
    """[X, H, N, A] -> [X, N, D]."""
    return x_XHNA.transpose(1, 2).flatten(2)
