"""Recurrent layers: encoders' over padded sentences, in one direction or both; decoders' cells and stacks.

Shapes: S sentences, R rows, T source and U target positions, D input width, H hidden units, G = gates · H.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

Cell = Literal["lstm", "gru"]


class BidirectionalLayer(nn.Module):
    """One recurrent layer read in both directions, each sentence from its own last token.

    The backward direction runs forward over sentences that are reversed by their own lengths, so padding
    always comes after what counts and never reaches a state.
    """

    def __init__(self, cell: Cell, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.cell = cell
        self.hidden_size = hidden_size
        self.forward_rnn = recurrent_layer(cell, input_size, hidden_size)
        self.backward_rnn = recurrent_layer(cell, input_size, hidden_size)

    def forward(self, inputs_STD: Tensor, length_S: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns states [S, T, 2H], 0 at padding, and the last state of each direction, [S, H] twice.

        The backward direction's last state is the one at the sentence's first token.
        """
        position_T = torch.arange(inputs_STD.shape[1], device=inputs_STD.device)
        last_S1 = (length_S - 1).unsqueeze(1)
        inside_ST = position_T <= last_S1
        mirror_ST1 = torch.where(inside_ST, last_S1 - position_T, position_T).unsqueeze(2)
        ahead_STH, _ = self.forward_rnn(inputs_STD)
        mirrored_STD = inputs_STD.gather(1, mirror_ST1.expand_as(inputs_STD))
        back_mirrored_STH, _ = self.backward_rnn(mirrored_STD)
        back_STH = back_mirrored_STH.gather(1, mirror_ST1.expand_as(back_mirrored_STH))
        states_ST2H = torch.cat([ahead_STH, back_STH], dim=2) * inside_ST.unsqueeze(2)
        index_S1H = last_S1.unsqueeze(2).expand(-1, 1, self.hidden_size)
        return states_ST2H, ahead_STH.gather(1, index_S1H).squeeze(1), back_STH[:, 0]


class BidirectionalEncoder(nn.Module):
    """Stacked bidirectional layers with dropout before each."""

    def __init__(
        self, cell: Cell, input_size: int, hidden_size: int, num_layers: int, *, dropout: float
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


StackedCell = Literal["lstm", "gru", "rnn", "rnn-relu"]


def recurrent_layer(cell: StackedCell, input_size: int, hidden_size: int) -> nn.RNNBase:
    """An LSTM, a GRU, or the simple network of Elman (1990), h = tanh(W x + U h + b) or ReLU for tanh."""
    if cell in ("lstm", "gru"):
        kind = nn.LSTM if cell == "lstm" else nn.GRU
        return kind(input_size, hidden_size, batch_first=True)
    nonlinearity = "tanh" if cell == "rnn" else "relu"
    return nn.RNN(input_size, hidden_size, nonlinearity=nonlinearity, batch_first=True)


class ForwardLayer(nn.Module):
    """One layer that reads each sentence from its first token to its own last one."""

    def __init__(self, rnn: nn.RNNBase) -> None:
        """`rnn` has the batch first, and may be a decoder's too."""
        super().__init__()
        self.rnn = rnn

    def forward(self, inputs_STD: Tensor, length_S: Tensor) -> tuple[Tensor, ...]:
        """Returns states [S, T, H], 0 at padding, and the last hidden, and an LSTM's cell, [S, H]."""
        packed = pack_padded_sequence(inputs_STD, length_S.cpu(), batch_first=True, enforce_sorted=False)
        states, last = self.rnn(packed)
        states_STH, _ = pad_packed_sequence(states, batch_first=True, total_length=inputs_STD.shape[1])
        return states_STH, *(value_1SH[0] for value_1SH in (last if isinstance(last, tuple) else (last,)))


class ForwardEncoder(nn.Module):
    """Stacked forward layers with dropout before each."""

    def __init__(
        self, cell: StackedCell, input_size: int, hidden_size: int, num_layers: int, *, dropout: float
    ) -> None:
        super().__init__()
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.layers = nn.ModuleList(ForwardLayer(recurrent_layer(cell, size, hidden_size)) for size in sizes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs_STD: Tensor, length_S: Tensor) -> list[tuple[Tensor, ...]]:
        """Hidden, and an LSTM's cell, of each layer at each sentence's end, [S, H]."""
        states, ends = inputs_STD, []
        for layer in self.layers:
            states, *last = layer(self.dropout(states), length_S)
            ends.append(tuple(last))
        return ends


class StackedRecurrent(nn.Module):
    """A decoder's layers with dropout between them: over all of a target at once, or a step at a time.

    Its state is `hidden0`, `hidden1`, ..., and an LSTM's `cell0`, ..., too, [R, H] each.
    """

    def __init__(
        self, cell: StackedCell, input_size: int, hidden_size: int, num_layers: int, *, dropout: float
    ) -> None:
        super().__init__()
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.layers = nn.ModuleList(recurrent_layer(cell, size, hidden_size) for size in sizes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs_SUD: Tensor, state: dict[str, Tensor]) -> Tensor:
        """The top layer's hidden states [S, U, H] over a whole sequence that begins in `state`."""
        states = inputs_SUD
        for number, layer in enumerate(self.layers):
            names = ("hidden", "cell") if isinstance(layer, nn.LSTM) else ("hidden",)
            # cuDNN refuses views of another layout.
            first = tuple(state[f"{name}{number}"].unsqueeze(0).contiguous() for name in names)
            states = self.dropout(states) if number else states
            states, _ = layer(states, first if len(first) > 1 else first[0])
        return states

    def step(self, inputs_RD: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """One token of every row: the top layer's hidden state [R, H], and the new state."""
        new: dict[str, Tensor] = {}
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.RNNBase)
            input_weight, recurrent_weight, input_bias, recurrent_bias = layer.all_weights[0]
            dropped_RD = self.dropout(inputs_RD) if number else inputs_RD
            projected_RG = functional.linear(dropped_RD, input_weight, input_bias)
            recurrent_RG = functional.linear(state[f"hidden{number}"], recurrent_weight, recurrent_bias)
            if isinstance(layer, nn.LSTM):
                gates_RG = projected_RG + recurrent_RG
                inputs_RD, new[f"cell{number}"] = lstm_gates(gates_RG, state[f"cell{number}"])
            elif isinstance(layer, nn.GRU):
                inputs_RD = gru_gates(projected_RG, recurrent_RG, state[f"hidden{number}"])
            else:
                summed_RH = projected_RG + recurrent_RG
                inputs_RD = summed_RH.relu() if layer.mode == "RNN_RELU" else summed_RH.tanh()
            new[f"hidden{number}"] = inputs_RD
        return inputs_RD, new
