"""Stacks of recurrent layers that read in one direction: an encoder's over padded sentences, and a decoder's.

Shapes: S sentences, R rows, T source positions, U target positions, D input width, H hidden units,
G = gates · H.
"""

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dragoman_training.models.layers.recurrent import gru_gates, lstm_gates

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
        self, cell: StackedCell, *, input_size: int, hidden_size: int, num_layers: int, dropout: float
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
        self, cell: StackedCell, *, input_size: int, hidden_size: int, num_layers: int, dropout: float
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
            states, _ = layer(
                self.dropout(states) if number else states, first if len(first) > 1 else first[0]
            )
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
                inputs_RD, new[f"cell{number}"] = lstm_gates(
                    projected_RG + recurrent_RG, state[f"cell{number}"]
                )
            elif isinstance(layer, nn.GRU):
                inputs_RD = gru_gates(projected_RG, recurrent_RG, state[f"hidden{number}"])
            else:
                summed_RH = projected_RG + recurrent_RG
                inputs_RD = summed_RH.relu() if layer.mode == "RNN_RELU" else summed_RH.tanh()
            new[f"hidden{number}"] = inputs_RD
        return inputs_RD, new
