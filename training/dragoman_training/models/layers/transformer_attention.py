"""How a Transformer's layers look at the source and at the past (Vaswani et al. 2017, section 3.2.3).

A decoder's layer may know its past by simpler simple recurrent units (Kim et al. 2019) instead of attention.

Shapes: H heads, A width of a head, D = H · A, S sentences, K beam, R = S·K rows, X sentences or rows,
Q queries a sentence, T source positions, U target positions, N positions attended to.
"""

from typing import Any

import torch
from torch import Tensor, nn

from dragoman_training.models.layers.attention import (
    HeadedAttention,
    ScaledDotAttention,
    join_heads,
    split_heads,
)


class PastAttention(ScaledDotAttention):
    """Attention of rows to their past too, which is padded on the left to that of the oldest."""

    def past(self, query_RHQA: Tensor, keys_RHNA: Tensor, values_RHNA: Tensor, mask_RN: Tensor) -> Tensor:
        """The context of rows whose last positions count, each its own number of them: [R, H, Q, A]."""
        return self.context(query_RHQA, keys_RHNA, values_RHNA, mask_RN.unsqueeze(1))


class SelfAttention(nn.Module):
    """Every position attends to the positions of its own sequence."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.num_heads = heads
        self.input = projection(width, 3)
        self.heads = PastAttention()
        self.output = projection(width, 1)

    def forward(self, inputs_STD: Tensor, mask_ST: Tensor) -> Tensor:
        """All positions at once, each sees all that are not masked: [S, T, D] -> [S, T, D]."""
        query, keys, values = self._project(inputs_STD)
        return self.output(join_heads(self.heads.context(query, keys, values, mask_ST.unsqueeze(1))))

    def causal(self, inputs_SUD: Tensor) -> Tensor:
        """All positions at once, each sees itself and those before it: [S, U, D] -> [S, U, D]."""
        query, keys, values = self._project(inputs_SUD)
        return self.output(join_heads(self.heads.causal(query, keys, values)))

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


class CrossAttention(HeadedAttention):
    """Every target position attends to the source."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(heads)
        self.query = projection(width, 1)
        self.memory = projection(width, 2)
        self.output = projection(width, 1)

    def keys(self, states_STD: Tensor) -> Tensor:
        return self.keys_and_values(states_STD)[0]

    def values(self, states_STD: Tensor) -> Tensor:
        return self.keys_and_values(states_STD)[1]

    def keys_and_values(self, states_STD: Tensor) -> tuple[Tensor, Tensor]:
        """Both by one product."""
        keys, values = (split_heads(x, self.num_heads) for x in self.memory(states_STD).chunk(2, dim=-1))
        return keys, values

    def join(self, context_SHQA: Tensor) -> Tensor:
        """The heads' contexts, projected together: [S, Q, D]."""
        return self.output(super().join(context_SHQA))


def projection(width: int, parts: int) -> nn.Linear:
    """D -> parts · D, every part begun by itself as Glorot and Bengio (2010) do, biases at 0."""
    linear = nn.Linear(width, parts * width)
    for part in linear.weight.chunk(parts):
        nn.init.xavier_uniform_(part)
    nn.init.zeros_(linear.bias)
    return linear


class SSRU(nn.Module):
    """A recurrence whose products depend on no step before (Kim et al. 2019, section 3.1).

    For the layer's input x_t: f_t = σ(W_f x_t + b_f), c_t = f_t ⊙ c_(t-1) + (1 - f_t) ⊙ W x_t, and the output
    is ReLU(c_t). Both products are one here, and W x_t has a bias too, which the paper leaves out.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.input = projection(width, 2)

    def causal(self, inputs_SUD: Tensor) -> Tensor:
        """All positions at once, from a state of zeros: [S, U, D] -> [S, U, D]."""
        # In float32, since what many steps add up would be rounded away.
        cell_SUD: Tensor = _Scan.apply(*_gated(self.input(inputs_SUD).float()))  # type: ignore[no-untyped-call]
        return cell_SUD.relu()

    def step(self, inputs_SKD: Tensor, cell_RD: Tensor) -> tuple[Tensor, Tensor]:
        """One more position of every row: the output [S, K, D] and the new state [R, D]."""
        forget_RD, added_RD = _gated(self.input(inputs_SKD.flatten(0, 1)))
        cell_RD = forget_RD * cell_RD + added_RD
        return cell_RD.relu().view(inputs_SKD.shape), cell_RD


def _gated(projected: Tensor) -> tuple[Tensor, Tensor]:
    """The share of the state that is kept, and what is added to it: [..., 2D] -> [..., D] twice."""
    gate, candidate = projected.chunk(2, dim=-1)
    forget = gate.sigmoid()
    return forget, (1 - forget) * candidate


class _Scan(torch.autograd.Function):
    """c_t = forget_t ⊙ c_(t-1) + added_t for all t, from c = 0: one operation a position, and one back."""

    @staticmethod
    def forward(ctx: Any, forget_SUD: Tensor, added_SUD: Tensor) -> Tensor:
        cell_SUD = added_SUD.clone(memory_format=torch.contiguous_format)
        forgets, cells = forget_SUD.unbind(1), cell_SUD.unbind(1)
        for position in range(1, len(cells)):
            cells[position].addcmul_(forgets[position], cells[position - 1])
        ctx.save_for_backward(forget_SUD, cell_SUD)
        return cell_SUD

    @staticmethod
    def backward(ctx: Any, grad_SUD: Tensor) -> tuple[Tensor, Tensor]:
        forget_SUD, cell_SUD = ctx.saved_tensors
        # What a cell changes: the output of its position, and the cell behind it.
        change_SUD = grad_SUD.clone(memory_format=torch.contiguous_format)
        forgets, changes = forget_SUD.unbind(1), change_SUD.unbind(1)
        for position in range(len(changes) - 1, 0, -1):
            changes[position - 1].addcmul_(forgets[position], changes[position])
        grad_forget_SUD = torch.zeros_like(change_SUD)
        torch.mul(change_SUD[:, 1:], cell_SUD[:, :-1], out=grad_forget_SUD[:, 1:])
        return grad_forget_SUD, change_SUD
