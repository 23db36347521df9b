"""PyTorch modules to ONNX graphs, by torch.export and the dynamo exporter.

Owns names, dynamic axes and the operator set. Must not know how a model works inside.

Sizes: S sentences, T source positions, K beam, P rows of the step before, U steps that a state has grown by.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
import torch
from onnx_ir.passes.common import ClearMetadataAndDocStringPass, InlinePass, RemoveUnusedNodesPass
from torch import Tensor, nn

from dragoman_export.graphs.encoder_and_step import DecoderStepGraph, EncoderGraph, export_ready
from dragoman_export.graphs.initializers import fold_all_constants, share_transposed
from dragoman_export.graphs.layers import Layers, first_layers, keep_first_layers, repeat_layers
from dragoman_export.graphs.output_layer import store_by_rows
from dragoman_export.graphs.token_tables import look_up_token_products
from dragoman_training.models import Seq2Seq, Transformer

OPSET = 20
"""The newest that onnxruntime's CUDA kernels for LSTM, GRU and TopK all cover."""

Axes = dict[int, torch.export.Dim]

# Sizes of the example that is traced, all different, so that none is taken for another.
SENTENCES, POSITIONS, BEAM, ROWS, PAST = 3, 5, 2, 7, 11

GROWTH = "U"
"""Name of the axis along which a state grows by one per step. It is 0 long when it leaves the encoder."""


@dataclass(frozen=True)
class Graphs:
    """The two graphs of one precision."""

    encoder: ir.Model
    decoder_step: ir.Model


def trace(model: Seq2Seq, *, dtype: torch.dtype = torch.float32, for_cpu: bool = False) -> Graphs:
    """Both graphs of a model, with its parameters in `dtype`: float32 or float16.

    With `for_cpu` a Transformer attends by onnxruntime's kernels for CPUs, which other devices lack.
    """
    memory_names, state_names = tensor_names(model)
    ready = export_ready(model, for_cpu=for_cpu).to(dtype)
    layers = keep_first_layers(ready) if isinstance(ready, Transformer) else None
    memory_of_step, state_of_step = memory_names, state_names
    if layers is not None:
        memory_of_step, state_of_step = first_layers(memory_names), first_layers(state_names)
    s, t, k, p = (torch.export.Dim(name, min=1) for name in ("S", "T", "K", "P"))
    u = torch.export.Dim(GROWTH, min=0)
    encoder = _export(
        EncoderGraph(ready),
        (torch.ones(SENTENCES, POSITIONS, dtype=torch.int64), torch.full((SENTENCES,), POSITIONS)),
        ({0: s, 1: t}, {0: s}),
        ["source", "source_length"],
        [*memory_names, *state_names],
        layers,
    )
    sizes = {"S": SENTENCES, "T": POSITIONS}
    outputs = {str(value.name): value for value in encoder.graph.outputs}
    memory = tuple(_example(outputs[name], sizes) for name in memory_of_step)
    # A state has one row per sentence when it leaves the encoder, and any number when it enters a step.
    state = tuple(_example(outputs[name], sizes | {"S": ROWS, GROWTH: PAST}) for name in state_of_step)
    # Three tensors, because one that is given three times would be traced as one input.
    token, parent, forced = torch.ones(3, SENTENCES, BEAM, dtype=torch.int64).unbind()
    by_row = {0: s, 1: k}
    decoder_step = _export(
        DecoderStepGraph(
            ready,
            tuple(name.removeprefix("memory.") for name in memory_of_step),
            tuple(name.removeprefix("state.") for name in state_of_step),
        ),
        (token, parent, torch.zeros(SENTENCES, BEAM), forced, memory, state),
        (
            by_row,
            by_row,
            by_row,
            by_row,
            tuple(_axes(outputs[name], {"S": s, "T": t}) for name in memory_of_step),
            tuple(_axes(outputs[name], {"S": p, "T": t, GROWTH: u}) for name in state_of_step),
        ),
        ["token", "parent", "score", "forced", *memory_names, *state_names],
        [
            "top_score",
            "top_index",
            "forced_score",
            "attention",
            *(f"next_{name}" for name in state_names),
        ],
        layers,
    )
    store_by_rows(decoder_step.graph)
    if dtype == torch.float32:
        # In float16 it is a GPU that multiplies, to which so small a product is nothing.
        look_up_token_products(decoder_step.graph)
    return Graphs(encoder, decoder_step)


def tensor_names(model: Seq2Seq) -> tuple[list[str], list[str]]:
    """Names of the model's memory and state in the graphs, each in order."""
    example = torch.ones(1, 1, dtype=torch.int64)
    with torch.no_grad():
        memory, state = model.encode(example, example[:, 0])
    return sorted(f"memory.{name}" for name in memory), sorted(f"state.{name}" for name in state)


def _export(
    module: nn.Module,
    example: tuple[Any, ...],
    dynamic_shapes: tuple[Any, ...],
    input_names: list[str],
    output_names: list[str],
    layers: Layers | None,
) -> ir.Model:
    """A module's graph; one that has only the first `layers` gets all, and has inputs and outputs for all."""
    # Little is traced twice: to remember the shapes of what was takes longer than to find them again.
    with _quiet(), torch._dynamo.config.patch(fake_tensor_cache_enabled=False):
        program = torch.onnx.export(
            module.eval(),
            example,
            dynamo=True,
            opset_version=OPSET,
            dynamic_shapes=dynamic_shapes,
            input_names=input_names if layers is None else first_layers(input_names),
            output_names=output_names if layers is None else first_layers(output_names),
            verbose=False,
            optimize=layers is None,
        )
        assert program is not None
        if layers is not None:
            InlinePass()(program.model)
            repeat_layers(program.model.graph, layers, input_names, output_names)
            program.optimize()
    model = program.model
    assert model.opset_imports[""] == OPSET
    fold_all_constants(model)
    share_transposed(model.graph)
    RemoveUnusedNodesPass()(model)
    # What the exporter notes of the source files is of no use to a reader of the graph.
    ClearMetadataAndDocStringPass()(model)
    return model


def _example(value: ir.Value, sizes: dict[str, int]) -> Tensor:
    """A tensor of the value's type and, with the given sizes, of its shape."""
    dtypes = {
        ir.DataType.FLOAT: torch.float32,
        ir.DataType.FLOAT16: torch.float16,
        ir.DataType.BOOL: torch.bool,
        ir.DataType.INT64: torch.int64,
    }
    assert value.dtype is not None
    shape = [size if isinstance(size, int) else sizes[size] for size in _sizes(value)]
    return torch.zeros(shape, dtype=dtypes[value.dtype])


def _axes(value: ir.Value, symbols: dict[str, torch.export.Dim]) -> Axes:
    return {axis: symbols[size] for axis, size in enumerate(_sizes(value)) if not isinstance(size, int)}


def _sizes(value: ir.Value) -> list[int | str]:
    """The sizes of what leaves the encoder, numbers and names of axes."""
    assert value.shape is not None
    return [GROWTH if size == 0 else size if isinstance(size, int) else str(size) for size in value.shape]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps back what the exporter says of its own insides: deprecations, absent packages, axis names."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
