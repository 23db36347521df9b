"""The two graphs of a bundle as modules: a model under the decoder-step contract.

Owns what the contract asks beside the model: gathering rows by parent, log-softmax, running scores, the best
candidates and the score of a forced token. Must not know of ONNX files.

Shapes: S sentences, K beam, R = S·K rows, P rows of the step before, T source positions, V target vocabulary,
N blocks of scores a row, B scores a block.
"""

import copy

import torch
from torch import Tensor, nn

from dragoman_export.graphs.attention import check_head_width
from dragoman_export.graphs.recurrent import BidirectionalGraphLayer, ForwardGraphLayer
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
        logits_RV = self.model.output(features_RD)
        token_score_RV = logits_RV.float().log_softmax(dim=-1)
        forced_score_R1 = token_score_RV.gather(1, forced_SK.reshape(-1, 1))
        top_score, top_index = best_continuations(token_score_RV, score_SK)
        return (
            top_score,
            top_index,
            forced_score_R1.reshape(sentences, beam) + score_SK,
            attention_SKT.float(),
            *in_order(new_state),
        )


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
            if isinstance(child, BidirectionalLayer):
                setattr(parent, name, BidirectionalGraphLayer(child))
            elif isinstance(child, ForwardLayer):
                setattr(parent, name, ForwardGraphLayer(child))
            elif isinstance(child, PastAttention):
                assert isinstance(parent, SelfAttention)
                check_head_width(parent.output.in_features, parent.num_heads)
                setattr(parent, name, PastAttentionGraph(child))
            elif isinstance(child, ContinuingAttention):
                setattr(parent, name, ContinuingAttentionGraph(child))
            elif isinstance(child, ScoredAttention):
                setattr(parent, name, AttentionGraph(child))
            elif isinstance(child, PredictedWindow):
                setattr(parent, name, PredictedWindowGraph(child))
    return model


def best_continuations(token_score_RV: Tensor, score_SK: Tensor) -> tuple[Tensor, Tensor]:
    """Of a sentence's running scores the 2K best, descending, and their places among its K·V: [S, 2K] each.

    `score_SK` is what each row has so far, and `token_score_RV` what each token adds to it.
    """
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
