"""The two graphs of a bundle as modules: a model under the decoder-step contract.

Owns what the contract asks beside the model: gathering rows by parent, log-softmax, running scores, the best
candidates and the score of a forced token. Must not know of ONNX files.

A recurrent encoder layer is one ONNX LSTM, GRU or RNN node that knows the sentences' lengths. The training
package runs each direction by itself over padded sentences; ONNX has one operator for both. Its rules on
CUDA: default activations, no clip, `linear_before_reset` for a GRU, the time axis first.

Shapes: S sentences, K beam, R = S·K rows, P rows of the step before, T source positions, V target vocabulary,
N blocks of scores a row or directions, B scores a block, D input width, H hidden units, G gates.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman_export.graphs.attention import check_head_width
from dragoman_export.graphs.step_end import block_size
from dragoman_export.graphs.traced_attention import (
    AttentionGraph,
    ContinuingAttentionGraph,
    PastAttentionGraph,
    PredictedWindowGraph,
)
from dragoman_training.models import Seq2Seq, Tensors
from dragoman_training.models.language_model import ContinuingAttention
from dragoman_training.models.layers.attention import ScoredAttention
from dragoman_training.models.layers.recurrent import BidirectionalLayer, ForwardLayer
from dragoman_training.models.layers.transformer_attention import PastAttention, SelfAttention
from dragoman_training.models.luong import PredictedWindow


class EncoderGraph(nn.Module):
    """source, source_length -> memory and first state, in the order of their names."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = model

    def forward(self, source_ST: Tensor, source_length_S: Tensor) -> tuple[Tensor, ...]:
        memory, state = self.model.encode(source_ST, source_length_S)
        return (*in_order(memory), *in_order(state))


class DecoderStepGraph(nn.Module):
    """One token for every row: candidates, forced scores, attention and the new state."""

    def __init__(self, model: Seq2Seq, memory_names: tuple[str, ...], state_names: tuple[str, ...]) -> None:
        super().__init__()
        self.model = model
        self.memory_names = memory_names
        self.state_names = state_names

    def forward(
        self,
        token_SK: Tensor,
        parent_SK: Tensor,
        score_SK: Tensor,
        forced_SK: Tensor,
        memory: tuple[Tensor, ...],
        state: tuple[Tensor, ...],
    ) -> tuple[Tensor, ...]:
        sentences, beam = token_SK.shape
        parent_R = parent_SK.flatten()
        gathered = [tensor.index_select(0, parent_R) for tensor in state]
        features_RD, attention_SKT, new_state = self.model.step(
            token_SK,
            dict(zip(self.memory_names, memory, strict=True)),
            dict(zip(self.state_names, gathered, strict=True)),
        )
        token_score_RV = self.model.output(features_RD).float().log_softmax(dim=-1)
        forced_score_R1 = token_score_RV.gather(1, forced_SK.reshape(-1, 1))
        top_score, top_index = best_continuations(token_score_RV, score_SK)
        forced_score = forced_score_R1.reshape(sentences, beam) + score_SK
        return top_score, top_index, forced_score, attention_SKT.float(), *in_order(new_state)


def in_order(tensors: Tensors) -> tuple[Tensor, ...]:
    """The tensors by the order of their names: the same whenever and wherever a graph is made."""
    return tuple(tensors[name] for name in sorted(tensors))


def export_ready(model: Seq2Seq) -> Seq2Seq:
    """A copy for export, in evaluation mode: recurrent layers as ONNX nodes, attention with fixed sums.

    The scale of embeddings is in the weights that read them.

    Raises ValueError for a Transformer's heads that are too wide for their sums to be fixed.
    """
    model = copy.deepcopy(model).eval().requires_grad_(False)
    for module in model.modules():
        if isinstance(module, Seq2Seq):
            module.fold_embedding_scale()
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if isinstance(child, PastAttention):
                assert isinstance(parent, SelfAttention)
                check_head_width(parent.output.in_features, parent.num_heads)
            for kind, graph in _GRAPHS.items():
                if isinstance(child, kind):
                    setattr(parent, name, graph(child))
                    break
    return model


def best_continuations(token_score_RV: Tensor, score_SK: Tensor) -> tuple[Tensor, Tensor]:
    """The 2K best running scores of each sentence, descending, and their places among its K·V: [S, 2K] each.
    `score_SK` is what each row has so far, and `token_score_RV` what each token adds to it."""
    sentences, beam = score_SK.shape
    vocabulary = token_score_RV.shape[-1]
    size = block_size(vocabulary)
    if size is None:
        running_RV = token_score_RV + score_SK.reshape(-1, 1)
        top_score, top_place = torch.topk(running_RV.reshape(sentences, -1), 2 * beam, dim=1)
        return top_score, top_place
    blocks = vocabulary // size
    best_RN = token_score_RV.reshape(-1, blocks, size).amax(dim=-1) + score_SK.reshape(-1, 1)
    _, block_SC = torch.topk(best_RN.reshape(sentences, -1), 2 * beam, dim=1)
    first_S1 = torch.arange(sentences, device=block_SC.device).unsqueeze(1) * (beam * blocks)
    chosen_XB = token_score_RV.reshape(-1, size).index_select(0, (block_SC + first_S1).reshape(-1))
    row_score_SC = score_SK.gather(1, _divide(block_SC, blocks))
    running_SX = (chosen_XB + row_score_SC.reshape(-1, 1)).reshape(sentences, -1)
    top_score, place = torch.topk(running_SX, 2 * beam, dim=1)
    number_SC = _divide(place, size)
    inside_SC = place - number_SC * size
    return top_score, block_SC.gather(1, number_SC) * size + inside_SC


def _divide(places: Tensor, size: int) -> Tensor:
    """Whole parts; to round down, which is the same here, would take five nodes more."""
    return torch.div(places, size, rounding_mode="trunc")


Attributes = dict[
    str, int | float | str | bool | Sequence[int] | Sequence[float] | Sequence[str] | Sequence[bool]
]

GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""The place in PyTorch's order of each gate in ONNX's: i f g o -> i o f c, and r z n -> z r h."""
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
            order = GATES[operator]
            gates = [[getattr(rnn, name).chunk(len(order)) for name in names] for rnn in directions]
            rows = [torch.cat([part[gate] for part in parts for gate in order]) for parts in gates]
            return nn.Parameter(torch.stack(rows).detach(), requires_grad=False)

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


_GRAPHS: dict[type[nn.Module], Callable[[Any], nn.Module]] = {
    BidirectionalLayer: BidirectionalGraphLayer,
    ForwardLayer: ForwardGraphLayer,
    PastAttention: PastAttentionGraph,
    ContinuingAttention: ContinuingAttentionGraph,
    ScoredAttention: AttentionGraph,
    PredictedWindow: PredictedWindowGraph,
}
"""What does in a graph what each kind of layer does; a kind before those that it is one of."""
