"""Simpler simple recurrent units (Kim et al. 2019), in a Transformer's decoder instead of self-attention.

Shapes: S sentences, K beam, R = S·K rows, U target positions, D width.
"""

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
        return _scan(*_gated(self.input(inputs_SUD).float())).relu()

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


def _scan(forget_SUD: Tensor, added_SUD: Tensor) -> Tensor:
    """c_t = forget_t ⊙ c_(t-1) + added_t for all t, from c = 0, in log2(U) passes (Hillis and Steele 1986).

    After the pass of distance d each position holds the sum over its last 2d positions.
    """
    cell_SUD, distance = added_SUD, 1
    while distance < added_SUD.shape[1]:
        earlier_SUD = forget_SUD[:, distance:] * cell_SUD[:, :-distance]
        cell_SUD = torch.cat([cell_SUD[:, :distance], cell_SUD[:, distance:] + earlier_SUD], dim=1)
        kept_SUD = forget_SUD[:, distance:] * forget_SUD[:, :-distance]
        forget_SUD = torch.cat([forget_SUD[:, :distance], kept_SUD], dim=1)
        distance *= 2
    return cell_SUD
