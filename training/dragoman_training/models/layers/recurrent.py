"""Recurrent layers: a bidirectional encoder layer over padded sentences, and cells for decoders.

Shapes: S sentences, R rows, T source positions, D input width, H hidden units, G = gates · H.
"""

from typing import Literal

import torch
from torch import Tensor, nn

Cell = Literal["lstm", "gru"]


class BidirectionalLayer(nn.Module):
    """One recurrent layer read in both directions, each sentence from its own last token.

    The backward direction runs forward over sentences that are reversed by their own lengths, so padding
    always comes after what counts and never reaches a state.
    """

    def __init__(self, cell: Cell, input_size: int, hidden_size: int) -> None:
        super().__init__()
        rnn = nn.LSTM if cell == "lstm" else nn.GRU
        self.cell = cell
        self.hidden_size = hidden_size
        self.forward_rnn = rnn(input_size, hidden_size, batch_first=True)
        self.backward_rnn = rnn(input_size, hidden_size, batch_first=True)

    def forward(self, inputs_STD: Tensor, length_S: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns states [S, T, 2H], 0 at padding, and the last state of each direction, [S, H] twice.

        The backward direction's last state is the one at the sentence's first token.
        """
        position_T = torch.arange(inputs_STD.shape[1], device=inputs_STD.device)
        inside_ST1 = (position_T < length_S.unsqueeze(1)).unsqueeze(2)
        last_S1 = (length_S - 1).unsqueeze(1)
        mirror_ST1 = torch.where(inside_ST1.squeeze(2), last_S1 - position_T, position_T).unsqueeze(2)

        ahead_STH, _ = self.forward_rnn(inputs_STD)
        mirrored_STD = inputs_STD.gather(1, mirror_ST1.expand_as(inputs_STD))
        back_mirrored_STH, _ = self.backward_rnn(mirrored_STD)
        back_STH = back_mirrored_STH.gather(1, mirror_ST1.expand_as(back_mirrored_STH))

        states_ST2H = torch.cat([ahead_STH, back_STH], dim=2) * inside_ST1
        index_S1H = last_S1.unsqueeze(2).expand(-1, 1, self.hidden_size)
        return states_ST2H, ahead_STH.gather(1, index_S1H).squeeze(1), back_STH[:, 0]


class BidirectionalEncoder(nn.Module):
    """Stacked bidirectional layers with dropout before each."""

    def __init__(
        self, cell: Cell, *, input_size: int, hidden_size: int, num_layers: int, dropout: float
    ) -> None:
        super().__init__()
        sizes = [input_size] + [2 * hidden_size] * (num_layers - 1)
        self.layers = nn.ModuleList(BidirectionalLayer(cell, size, hidden_size) for size in sizes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs_STD: Tensor, length_S: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the top layer's states [S, T, 2H] and last states, as `BidirectionalLayer` does."""
        states = inputs_STD
        for layer in self.layers:
            states, ahead_SH, back_SH = layer(self.dropout(states), length_S)
        return states, ahead_SH, back_SH


class LSTMCell(nn.Module):
    """A long short-term memory cell with forget gates (Gers et al. 2000), gates ordered i f g o.

    Its input comes already projected: what is known beforehand for all steps is projected outside the loop.
    """

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.recurrent = nn.Linear(hidden_size, 4 * hidden_size, bias=False)

    def forward(self, projected_RG: Tensor, hidden_RH: Tensor, cell_RH: Tensor) -> tuple[Tensor, Tensor]:
        """One step: the projected input [R, 4H], biases included, and the state -> new hidden and cell."""
        return lstm_gates(projected_RG + self.recurrent(hidden_RH), cell_RH)


def lstm_gates(gates_RG: Tensor, cell_RH: Tensor) -> tuple[Tensor, Tensor]:
    """The gates i f g o before their activations [R, 4H], and the old cell -> new hidden and cell."""
    i, f, g, o = gates_RG.chunk(4, dim=-1)
    cell = f.sigmoid() * cell_RH + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


class GRUCell(nn.Module):
    """A gated recurrent unit (Cho et al. 2014), gates ordered r z n, the reset gate after the product.

    That order of reset and product is the one that cuDNN and ONNX (`linear_before_reset`) share.
    """

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.recurrent = nn.Linear(hidden_size, 3 * hidden_size)

    def forward(self, projected_RG: Tensor, hidden_RH: Tensor) -> Tensor:
        """One step: the projected input [R, 3H], biases included, and the state -> new hidden."""
        return gru_gates(projected_RG, self.recurrent(hidden_RH), hidden_RH)


def gru_gates(projected_RG: Tensor, recurrent_RG: Tensor, hidden_RH: Tensor) -> Tensor:
    """The gates r z n of input and state before their activations [R, 3H], and the old hidden -> the new."""
    r, z, n = projected_RG.chunk(3, dim=-1)
    r_h, z_h, n_h = recurrent_RG.chunk(3, dim=-1)
    candidate = (n + (r + r_h).sigmoid() * n_h).tanh()
    update = (z + z_h).sigmoid()
    return candidate + update * (hidden_RH - candidate)
