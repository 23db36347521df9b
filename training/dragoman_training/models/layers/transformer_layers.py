"""The layers of a Transformer: sublayers with residual connections, and positions.

Shapes: S sentences, K beam, R = S·K rows, T source positions, U target positions, L positions of the table,
H heads, A width of a head, D = H · A.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from dragoman_training.models.layers.transformer_attention import SSRU, CrossAttention, SelfAttention

Norm = Literal["pre", "post"]
Past = Literal["self-attention", "ssru"]
Activation = Literal["relu", "gelu", "gelu-tanh", "gelu-sigmoid", "swish"]


class SigmoidGELU(nn.Module):
    """The approximation x · σ(1.702 x) of Hendrycks and Gimpel (2016), section 2."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


ACTIVATIONS: dict[Activation, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu-tanh": partial(nn.GELU, approximate="tanh"),
    "gelu-sigmoid": SigmoidGELU,
    "swish": nn.SiLU,
}


class Residual(nn.Module):
    """What surrounds a sublayer: the residual connection, layer normalisation and dropout.

    `post` normalises the sum (Vaswani et al. 2017, section 3.1), `pre` what goes into the sublayer, which
    trains without a long warm-up (Xiong et al. 2020).
    """

    def __init__(self, width: int, norm: Norm, dropout: float) -> None:
        super().__init__()
        self.is_pre = norm == "pre"
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def before(self, x: Tensor) -> Tensor:
        """What the sublayer reads."""
        return self.norm(x) if self.is_pre else x

    def after(self, x: Tensor, change: Tensor) -> Tensor:
        """What stands behind the sublayer."""
        total = x + self.dropout(change)
        return total if self.is_pre else self.norm(total)

    def wrap(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """A sublayer that returns nothing but its change, with all that surrounds it."""
        return self.after(x, sublayer(self.before(x)))


class FeedForward(nn.Module):
    """Two linear layers with an activation between, for each position alone (equation 2)."""

    def __init__(self, width: int, units: int, activation: Activation) -> None:
        super().__init__()
        self.expand = nn.Linear(width, units)
        self.activation = ACTIVATIONS[activation]()
        self.contract = nn.Linear(units, width)
        for linear in (self.expand, self.contract):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.contract(self.activation(self.expand(x)))


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward sublayer."""

    def __init__(
        self, width: int, heads: int, units: int, activation: Activation, norm: Norm, dropout: float
    ) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.attention_residual = Residual(width, norm, dropout)
        self.feed_forward = FeedForward(width, units, activation)
        self.feed_forward_residual = Residual(width, norm, dropout)

    def forward(self, x_STD: Tensor, mask_ST: Tensor) -> Tensor:
        x_STD = self.attention_residual.wrap(x_STD, lambda x: self.attention(x, mask_ST))
        return self.feed_forward_residual.wrap(x_STD, self.feed_forward)


class DecoderLayer(nn.Module):
    """A sublayer that knows the past, cross-attention over the source, and a feed-forward sublayer."""

    def __init__(
        self,
        width: int,
        heads: int,
        units: int,
        activation: Activation,
        norm: Norm,
        dropout: float,
        past: Past,
    ) -> None:
        super().__init__()
        if past == "ssru":
            self.ssru = SSRU(width)
        else:
            self.self_attention = SelfAttention(width, heads)
        self.is_recurrent = past == "ssru"
        self.self_residual = Residual(width, norm, dropout)
        self.cross_attention = CrossAttention(width, heads)
        self.cross_residual = Residual(width, norm, dropout)
        self.feed_forward = FeedForward(width, units, activation)
        self.feed_forward_residual = Residual(width, norm, dropout)

    def forward(self, x_SUD: Tensor, keys_SHTA: Tensor, values_SHTA: Tensor, mask_ST: Tensor) -> Tensor:
        """All target positions at once."""
        encoded = keys_SHTA, values_SHTA, mask_ST
        x_SUD = self._after_past(x_SUD)
        x_SUD = self.cross_residual.wrap(x_SUD, lambda x: self.cross_attention.context(x, *encoded))
        return self.feed_forward_residual.wrap(x_SUD, self.feed_forward)

    def look(
        self, x_SUD: Tensor, keys_SHTA: Tensor, values_SHTA: Tensor, mask_ST: Tensor
    ) -> tuple[Tensor, Tensor]:
        """All target positions at once, and the weights of every head over the source, [S, H, U, T]."""
        x_SUD = self._after_past(x_SUD)
        residual, encoded = self.cross_residual, (keys_SHTA, values_SHTA, mask_ST)
        change, weights_SHUT = self.cross_attention.by_head(residual.before(x_SUD), *encoded)
        return self.feed_forward_residual.wrap(residual.after(x_SUD, change), self.feed_forward), weights_SHUT

    def step(
        self,
        x_SKD: Tensor,
        past: tuple[Tensor, ...],
        past_mask_RN: Tensor | None,
        memory: tuple[Tensor, Tensor],
        mask_ST: Tensor,
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """One target position of every row: its features, its weights [S, H, K, T], and its new past.

        The past is keys and values of self-attention, [R, H, U, A] each, with a mask of those that count, or
        an SSRU's state, [R, D], without.
        """
        residual = self.self_residual
        if past_mask_RN is None:
            change, *new = self.ssru.step(residual.before(x_SKD), *past)
        else:
            keys, values = past
            change, *new = self.self_attention.step(residual.before(x_SKD), keys, values, past_mask_RN)
        x_SKD = residual.after(x_SKD, change)
        residual = self.cross_residual
        change, weights_SHKT = self.cross_attention.by_head(residual.before(x_SKD), *memory, mask_ST)
        x_SKD = residual.after(x_SKD, change)
        return self.feed_forward_residual.wrap(x_SKD, self.feed_forward), weights_SHKT, tuple(new)

    def _after_past(self, x_SUD: Tensor) -> Tensor:
        past = self.ssru if self.is_recurrent else self.self_attention
        return self.self_residual.wrap(x_SUD, past.causal)


class Positions(nn.Module):
    """A vector for each position, by a table of L; what lies beyond it has the vector of its end."""

    def __init__(self, num_positions: int, width: int, kind: Literal["sinusoidal", "learned"]) -> None:
        super().__init__()
        self.last = num_positions - 1
        self.table_LD: Tensor
        if kind == "learned":
            # What sinusoids have on average in a dimension.
            table_LD = nn.Parameter(torch.randn(num_positions, width) * math.sqrt(0.5))
            self.register_parameter("table_LD", table_LD)
        else:
            self.register_buffer("table_LD", sinusoids(num_positions, width), persistent=False)

    def forward(self, position: Tensor) -> Tensor:
        """Positions from 0, [...] int64 -> [..., D]."""
        return nn.functional.embedding(position.clamp(max=self.last), self.table_LD)


def sinusoids(num_positions: int, width: int) -> Tensor:
    """The positions of section 3.5: [L, D].

    All sines come first and the cosines behind them, as in the paper's own code and in Marian; the paper's
    text has them by turns, which is the same but for the order of dimensions.
    """
    half = torch.arange((width + 1) // 2, dtype=torch.float64)
    angle = torch.arange(num_positions, dtype=torch.float64).unsqueeze(1) / 10000 ** (2 * half / width)
    return torch.cat([angle.sin(), angle[:, : width // 2].cos()], dim=1).float()
