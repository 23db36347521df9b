"""A model in PyTorch as the reference that its graphs are held against, also rounding as int8 graphs do.

Owns what is rounded, and to what. Must not know of graphs: what is wrong with one is not repeated here.

Shapes: S sentences, K beam, R = S·K rows, T source positions, V target vocabulary.
"""

import copy
from typing import Any

import torch
from dragoman_bundle.search import Ids
from torch import Tensor, nn

from dragoman_export.int8.graph import LARGEST, LARGEST_WEIGHT, SMALLEST_MAXIMUM
from dragoman_export.reference.model import Array, Arrays
from dragoman_training.models import Seq2Seq, Tensors
from dragoman_training.models.layers.embedding import OutputLayer


class TorchReference:
    """A `ReferenceModel` that steps a model in evaluation mode."""

    def __init__(self, model: Seq2Seq, bos: int) -> None:
        self._model = model.eval()
        self.bos = bos
        self.vocabulary_size = model.output.embedding.num_embeddings

    @torch.inference_mode()
    def encode(self, source_ST: Ids, source_length_S: Ids) -> tuple[Arrays, Arrays]:
        memory, state = self._model.encode(torch.from_numpy(source_ST), torch.from_numpy(source_length_S))
        return _arrays(memory), _arrays(state)

    @torch.inference_mode()
    def step(self, token_SK: Ids, memory: Arrays, state: Arrays) -> tuple[Array, Array, Arrays]:
        token = torch.from_numpy(token_SK)
        features, attention, new = self._model.step(token, _tensors(memory), _tensors(state))
        return self._model.output(features).float().numpy(), attention.float().numpy(), _arrays(new)

    @torch.inference_mode()
    def token_scores(self, logits_RV: Array) -> Array:
        return torch.from_numpy(logits_RV).log_softmax(dim=-1).numpy()

    def rounded(self) -> "TorchReference":
        return TorchReference(rounded_to_int8(self._model), self.bos)


def _arrays(tensors: Tensors) -> Arrays:
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def _tensors(arrays: Arrays) -> Tensors:
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def rounded_to_int8(model: Seq2Seq) -> Seq2Seq:
    """A copy whose matrices are multiples of a step for each output, and the rows multiplied by them too.

    Tables of positions and what has one axis stay as they are, as do what layers hold between products.
    """
    model = copy.deepcopy(model)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2 and not name.endswith("table_LD"):
                _round_rows(parameter, LARGEST_WEIGHT)
        for module in model.modules():
            if isinstance(module, OutputLayer):
                # An ensemble's is no parameter of any member.
                _round_rows(module.embedding.weight, LARGEST_WEIGHT)
            if isinstance(module, nn.Linear | OutputLayer):
                module.register_forward_pre_hook(_round_input)
    return model


def _round_input(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    rows, *rest = inputs
    return (_round_rows(rows.clone(), LARGEST), *rest)


def _round_rows(rows: Tensor, largest_code: int) -> Tensor:
    """Rounds rows [..., K] in place, each to the multiples of a step that reach its largest value."""
    step = rows.abs().amax(dim=-1, keepdim=True).clamp_(min=SMALLEST_MAXIMUM).div_(largest_code)
    return rows.div_(step).round_().mul_(step)
