"""Simpler simple recurrent units (Kim et al. 2019), in a Transformer's decoder instead of self-attention.

Shapes: S sentences, K beam, R = S·K rows, U target positions, D width.
"""

from typing import Any

import torch
from torch import Tensor, nn

from dragoman_training.models.layers.transformer_attention import projection


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
