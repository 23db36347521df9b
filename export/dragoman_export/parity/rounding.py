"""PyTorch rounding to eight bits as int8 graphs do: how far a sound int8 graph of a model may be from it.

Owns what is rounded, and to what. Must not know of graphs: what is wrong with one is not repeated here.
"""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from dragoman_export.int8.graph import LARGEST as LARGEST_ROW_CODE
from dragoman_export.int8.graph import SMALLEST_MAXIMUM
from dragoman_export.int8.weights import LARGEST as LARGEST_WEIGHT_CODE
from dragoman_training.models import Seq2Seq
from dragoman_training.models.layers.output import OutputLayer


def rounded_to_int8(model: Seq2Seq) -> Seq2Seq:
    """A copy whose matrices are multiples of a step for each output, and the rows multiplied by them too.

    Tables of positions and what has one axis stay as they are, as do what layers hold between products.
    """
    model = copy.deepcopy(model)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 2 and not name.endswith("table_LD"):
                _round_rows(parameter, LARGEST_WEIGHT_CODE)
        for module in model.modules():
            if isinstance(module, OutputLayer):
                # An ensemble's is no parameter of any member.
                _round_rows(module.embedding.weight, LARGEST_WEIGHT_CODE)
            if isinstance(module, nn.Linear | OutputLayer):
                module.register_forward_pre_hook(_round_input)
    return model


def _round_input(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    rows, *rest = inputs
    return (_round_rows(rows.clone(), LARGEST_ROW_CODE), *rest)


def _round_rows(rows: Tensor, largest_code: int) -> Tensor:
    """Rounds rows [..., K] in place, each to the multiples of a step that reach its largest value."""
    step = rows.abs().amax(dim=-1, keepdim=True).clamp_(min=SMALLEST_MAXIMUM).div_(largest_code)
    return rows.div_(step).round_().mul_(step)
