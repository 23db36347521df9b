"""A recurrent encoder layer as one ONNX LSTM or GRU node that knows the sentences' lengths.

The training package runs each direction by hand over padded sentences; ONNX has one operator for both. Its
rules on CUDA: default activations, no clip, `linear_before_reset` for a GRU, the time axis first.

Shapes: S sentences, T source positions, D input width, H hidden units, G gates.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dragoman_training.models.recurrent import BidirectionalLayer

Attributes = dict[
    str, int | float | str | bool | Sequence[int] | Sequence[float] | Sequence[str] | Sequence[bool]
]

GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}
"""For each gate in ONNX's order its place in PyTorch's: i f g o -> i o f c, and r z n -> z r h."""


class RecurrentGraphLayer(nn.Module):
    """Does what a BidirectionalLayer does, with a node that torch.onnx.export puts into the graph as it is.

    Can be exported and not run: PyTorch has no kernel for an ONNX node.
    """

    def __init__(self, layer: BidirectionalLayer) -> None:
        super().__init__()
        self.operator = layer.cell.upper()
        self.hidden_size = layer.hidden_size
        order = GATES[layer.cell]

        def stack(*names: str) -> nn.Parameter:
            """The named parameters below each other, both directions behind each other, in ONNX's order."""
            directions = [
                torch.cat([reorder_gates(getattr(rnn, name), order) for name in names])
                for rnn in (layer.forward_rnn, layer.backward_rnn)
            ]
            return nn.Parameter(torch.stack(directions).detach(), requires_grad=False)

        # ONNX's W [2, G·H, D], R [2, G·H, H] and B [2, 2·G·H], input biases before recurrent ones.
        self.input_weight = stack("weight_ih_l0")
        self.recurrent_weight = stack("weight_hh_l0")
        self.bias = stack("bias_ih_l0", "bias_hh_l0")

    def forward(self, inputs_STD: Tensor, length_S: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns states [S, T, 2H], 0 at padding, and the last state of each direction, [S, H] twice."""
        sentences, positions, _ = inputs_STD.shape
        last_shape = (2, sentences, self.hidden_size)
        attributes: Attributes = {"direction": "bidirectional", "hidden_size": self.hidden_size}
        shapes = [(positions, *last_shape), last_shape]
        if self.operator == "GRU":
            attributes["linear_before_reset"] = 1
        else:
            shapes.append(last_shape)
        states_T2SH, last_2SH, *_ = torch.onnx.ops.symbolic_multi_out(
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
        states_ST2H = states_T2SH.permute(2, 0, 1, 3).flatten(2)
        return states_ST2H, last_2SH[0], last_2SH[1]


def reorder_gates(stacked: Tensor, order: tuple[int, ...]) -> Tensor:
    """Gates stacked on the first axis, in another order: [G·H, ...] -> [G·H, ...]."""
    gates = stacked.chunk(len(order))
    return torch.cat([gates[place] for place in order])
