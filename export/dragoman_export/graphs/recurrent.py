"""A recurrent encoder layer as one ONNX LSTM, GRU or RNN node that knows the sentences' lengths.

The training package runs each direction by itself over padded sentences; ONNX has one operator for both. Its
rules on CUDA: default activations, no clip, `linear_before_reset` for a GRU, the time axis first.

Shapes: S sentences, T source positions, D input width, H hidden units, G gates,
N directions.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman_training.models.layers.recurrent import BidirectionalLayer, ForwardLayer

Attributes = dict[
    str, int | float | str | bool | Sequence[int] | Sequence[float] | Sequence[str] | Sequence[bool]
]

GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""For each gate in ONNX's order its place in PyTorch's: i f g o -> i o f c, and r z n -> z r h."""
ACTIVATIONS = {"RNN_TANH": "Tanh", "RNN_RELU": "Relu"}
"""ONNX's names of what a simple network's states go through, by PyTorch's mode of the layer."""


class RecurrentNode(nn.Module):
    """A recurrent node that torch.onnx.export puts into the graph as it is.

    Can be exported and not run: PyTorch has no kernel for an ONNX node.
    """

    def __init__(self, operator: str, direction: str, directions: Sequence[nn.RNNBase]) -> None:
        """`direction` is ONNX's name for what the layers in `directions` read."""
        super().__init__()
        self.operator = operator
        self.direction = direction
        self.num_directions = len(directions)
        self.hidden_size = directions[0].hidden_size
        self.activation = ACTIVATIONS.get(directions[0].mode)

        def stack(*names: str) -> nn.Parameter:
            """The named parameters below each other, directions behind each other, in ONNX's order."""
            stacked = [
                torch.cat([reorder_gates(getattr(rnn, name), GATES[operator]) for name in names])
                for rnn in directions
            ]
            return nn.Parameter(torch.stack(stacked).detach(), requires_grad=False)

        # ONNX's W [N, G·H, D], R [N, G·H, H] and B [N, 2·G·H], input biases before recurrent ones.
        self.input_weight = stack("weight_ih_l0")
        self.recurrent_weight = stack("weight_hh_l0")
        self.bias = stack("bias_ih_l0", "bias_hh_l0")

    def run(self, inputs_STD: Tensor, length_S: Tensor) -> tuple[Tensor, ...]:
        """Returns states [S, T, N·H], 0 at padding, and the last hidden, and an LSTM's cell, [N, S, H]."""
        if self.activation is not None:
            # A lone sentence would be multiplied by another routine, which adds up in another order.
            inputs_STD = functional.pad(inputs_STD, (0, 0, 0, 0, 0, 1))
            length_S = functional.pad(length_S, (0, 1), value=1)
            states, last = self._run(inputs_STD, length_S)
            return states[:-1], last[:, :-1]
        return self._run(inputs_STD, length_S)

    def _run(self, inputs_STD: Tensor, length_S: Tensor) -> tuple[Tensor, ...]:
        sentences, positions, _ = inputs_STD.shape
        last_shape = (self.num_directions, sentences, self.hidden_size)
        attributes: Attributes = {"direction": self.direction, "hidden_size": self.hidden_size}
        shapes = [(positions, *last_shape), last_shape]
        if self.operator == "GRU":
            attributes["linear_before_reset"] = 1
        elif self.activation is not None:
            attributes["activations"] = [self.activation]
        else:
            shapes.append(last_shape)
        states_TNSH, *last = torch.onnx.ops.symbolic_multi_out(
            self.operator,
            (
                inputs_STD.transpose(0, 1),
                self.input_weight,
                self.recurrent_weight,
                self.bias,
                length_S.to(torch.int32),
            ),
            attributes,
            dtypes=[inputs_STD.dtype] * len(shapes),
            shapes=shapes,
            version=14,
        )
        return states_TNSH.permute(2, 0, 1, 3).flatten(2), *last


class BidirectionalGraphLayer(RecurrentNode):
    """Does what a BidirectionalLayer does, in one node."""

    def __init__(self, layer: BidirectionalLayer) -> None:
        super().__init__(layer.cell.upper(), "bidirectional", (layer.forward_rnn, layer.backward_rnn))

    def forward(self, inputs_STD: Tensor, length_S: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns states [S, T, 2H], 0 at padding, and the last state of each direction, [S, H] twice."""
        states_ST2H, last_2SH, *_ = self.run(inputs_STD, length_S)
        return states_ST2H, last_2SH[0], last_2SH[1]


class ForwardGraphLayer(RecurrentNode):
    """Does what a ForwardLayer does, in one node."""

    def __init__(self, layer: ForwardLayer) -> None:
        mode = layer.rnn.mode
        super().__init__("RNN" if mode in ACTIVATIONS else mode, "forward", (layer.rnn,))

    def forward(self, inputs_STD: Tensor, length_S: Tensor) -> tuple[Tensor, ...]:
        """Returns states [S, T, H], 0 at padding, and hidden, and an LSTM's cell, at the end, [S, H]."""
        states_STH, *last = self.run(inputs_STD, length_S)
        return states_STH, *(value_1SH[0] for value_1SH in last)


def reorder_gates(stacked: Tensor, order: tuple[int, ...]) -> Tensor:
    """Gates stacked on the first axis, in another order: [G·H, ...] -> [G·H, ...]."""
    gates = stacked.chunk(len(order))
    return torch.cat([gates[place] for place in order])
