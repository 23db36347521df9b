"""Stacks of LSTM layers that read in one direction: an encoder's over padded sentences, and a decoder's.

Shapes: S sentences, R rows, T source positions, U target positions, D input width, H hidden units, G = 4 · H.
"""

from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from dragoman_training.models.layers.recurrent import lstm_gates


class ForwardLayer(nn.Module):
    """One LSTM layer that reads each sentence from its first token to its own last one."""

    def __init__(self, rnn: nn.LSTM) -> None:
        """`rnn` has the batch first, and may be a decoder's too."""
        super().__init__()
        self.rnn = rnn

    def forward(self, inputs_STD: Tensor, length_S: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns states [S, T, H], 0 at padding, and the sentences' last hidden and cell, [S, H] twice."""
        packed = pack_padded_sequence(inputs_STD, length_S.cpu(), batch_first=True, enforce_sorted=False)
        states, (hidden_1SH, cell_1SH) = self.rnn(packed)
        states_STH, _ = pad_packed_sequence(states, batch_first=True, total_length=inputs_STD.shape[1])
        return states_STH, hidden_1SH[0], cell_1SH[0]


class ForwardEncoder(nn.Module):
    """Stacked forward layers with dropout before each."""

    def __init__(self, *, input_size: int, hidden_size: int, num_layers: int, dropout: float) -> None:
        super().__init__()
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.layers = nn.ModuleList(
            ForwardLayer(nn.LSTM(size, hidden_size, batch_first=True)) for size in sizes
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs_STD: Tensor, length_S: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Hidden and cell of each layer at each sentence's end, [S, H] twice."""
        states, ends = inputs_STD, []
        for layer in self.layers:
            states, hidden_SH, cell_SH = layer(self.dropout(states), length_S)
            ends.append((hidden_SH, cell_SH))
        return ends


class StackedLSTM(nn.Module):
    """A decoder's LSTM layers with dropout between them: over all of a target at once, or a step at a time.

    Its state is `hidden0`, `cell0`, `hidden1`, ..., [R, H] each.
    """

    def __init__(self, *, input_size: int, hidden_size: int, num_layers: int, dropout: float) -> None:
        super().__init__()
        sizes = [input_size] + [hidden_size] * (num_layers - 1)
        self.layers = nn.ModuleList(nn.LSTM(size, hidden_size, batch_first=True) for size in sizes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, inputs_SUD: Tensor, state: dict[str, Tensor]) -> Tensor:
        """The top layer's hidden states [S, U, H] over a whole sequence that begins in `state`."""
        states = inputs_SUD
        for number, layer in enumerate(self.layers):
            first = (state[f"hidden{number}"].unsqueeze(0), state[f"cell{number}"].unsqueeze(0))
            states, _ = layer(self.dropout(states) if number else states, first)
        return states

    def step(self, inputs_RD: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """One token of every row: the top layer's hidden state [R, H], and the new state."""
        new: dict[str, Tensor] = {}
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.LSTM)
            input_weight, recurrent_weight, input_bias, recurrent_bias = layer.all_weights[0]
            dropped_RD = self.dropout(inputs_RD) if number else inputs_RD
            projected_RG = functional.linear(dropped_RD, input_weight, input_bias)
            recurrent_RG = functional.linear(state[f"hidden{number}"], recurrent_weight, recurrent_bias)
            hidden_RH, new[f"cell{number}"] = lstm_gates(projected_RG + recurrent_RG, state[f"cell{number}"])
            new[f"hidden{number}"] = inputs_RD = hidden_RH
        return hidden_RH, new
