"""PyTorch modules to ONNX graphs, by torch.export and the dynamo exporter.

Owns names, dynamic axes and the operator set. Must not know how a model works inside.

Sizes: S sentences, T source positions, K beam, P rows of the step before, U steps that a state has grown by.
"""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnx_ir.passes.common import ClearMetadataAndDocStringPass, RemoveUnusedNodesPass
from onnxscript.optimizer import fold_constants
from torch import Tensor, nn

from dragoman_export.graphs.builder import GROWTH, OPSET, Graphs, Nodes, stored_array
from dragoman_export.graphs.encoder_and_step import DecoderStepGraph, EncoderGraph, export_ready
from dragoman_export.graphs.rewrites import look_up_token_products, store_by_rows
from dragoman_training.models import Seq2Seq

Axes = dict[int, torch.export.Dim]

# Sizes of the example that is traced, all different, so that none is taken for another.
SENTENCES, POSITIONS, BEAM, ROWS, PAST = 3, 5, 2, 7, 11


def trace(model: Seq2Seq, *, dtype: torch.dtype = torch.float32) -> Graphs:
    """Both graphs of a model, with its parameters in `dtype`: float32 or float16."""
    memory_names, state_names = tensor_names(model)
    ready = export_ready(model).to(dtype)
    s, t, k, p = (torch.export.Dim(name, min=1) for name in ("S", "T", "K", "P"))
    u = torch.export.Dim(GROWTH, min=0)
    encoder = _export(
        EncoderGraph(ready),
        (torch.ones(SENTENCES, POSITIONS, dtype=torch.int64), torch.full((SENTENCES,), POSITIONS)),
        ({0: s, 1: t}, {0: s}),
        ["source", "source_length"],
        [*memory_names, *state_names],
    )
    sizes = {"S": SENTENCES, "T": POSITIONS}
    outputs = {str(value.name): value for value in encoder.graph.outputs}
    memory = tuple(_example(outputs[name], sizes) for name in memory_names)
    # A state has one row per sentence when it leaves the encoder, and any number when it enters a step.
    state = tuple(_example(outputs[name], sizes | {"S": ROWS, GROWTH: PAST}) for name in state_names)
    # Three tensors, because one that is given three times would be traced as one input.
    token, parent, forced = torch.ones(3, SENTENCES, BEAM, dtype=torch.int64).unbind()
    by_row = {0: s, 1: k}
    decoder_step = _export(
        DecoderStepGraph(
            ready,
            tuple(name.removeprefix("memory.") for name in memory_names),
            tuple(name.removeprefix("state.") for name in state_names),
        ),
        (token, parent, torch.zeros(SENTENCES, BEAM), forced, memory, state),
        (
            by_row,
            by_row,
            by_row,
            by_row,
            tuple(_axes(outputs[name], {"S": s, "T": t}) for name in memory_names),
            tuple(_axes(outputs[name], {"S": p, "T": t, GROWTH: u}) for name in state_names),
        ),
        ["token", "parent", "score", "forced", *memory_names, *state_names],
        ["top_score", "top_index", "forced_score", "attention", *(f"next_{name}" for name in state_names)],
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


def fold_all_constants(model: ir.Model) -> None:
    """Works out what follows from constants alone, of any size; the exporter stops at some thousand elements.

    So what is constant in a small model is constant in a large one, and whoever rewrites a graph may rest on
    it. A matrix that was left to be transposed stays so: it may be tied, and is stored once.
    """
    fold_constants(
        model,
        input_size_limit=sys.maxsize,
        output_size_limit=sys.maxsize,
        should_fold=lambda node: False if node.op_type == "Transpose" else None,
    )


def _export(
    module: nn.Module,
    example: tuple[Any, ...],
    dynamic_shapes: tuple[Any, ...],
    input_names: list[str],
    output_names: list[str],
) -> ir.Model:
    # Little is traced twice: to remember the shapes of what was takes longer than to find them again.
    with _quiet(), torch._dynamo.config.patch(fake_tensor_cache_enabled=False):
        program = torch.onnx.export(
            module.eval(),
            example,
            dynamo=True,
            opset_version=OPSET,
            dynamic_shapes=dynamic_shapes,
            input_names=input_names,
            output_names=output_names,
            verbose=False,
        )
        assert program is not None
    model = program.model
    assert model.opset_imports[""] == OPSET
    fold_all_constants(model)
    share_transposed(model.graph)
    RemoveUnusedNodesPass()(model)
    # What the exporter notes of the source files is of no use to a reader of the graph.
    ClearMetadataAndDocStringPass()(model)
    return model


def _example(value: ir.Value, sizes: dict[str, int]) -> Tensor:
    assert value.dtype is not None
    shape = [size if isinstance(size, int) else sizes[size] for size in _sizes(value)]
    return torch.from_numpy(np.zeros(shape, value.dtype.numpy()))


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


def share_transposed(graph: ir.Graph) -> None:
    """Derives a matrix that is the transpose of another one from it, so that a tied weight is stored once.

    The exporter folds the transpose of an output layer that is tied to an embedding. onnxruntime does the
    same when it loads the graph, so nothing is transposed at run time.
    """
    constants = graph.initializers.values()
    matrices = [value for value in constants if value.shape is not None and len(value.shape) == 2]
    arrays = {value: stored_array(value) for value in matrices}
    for tied in matrices:
        for original in matrices[: matrices.index(tied)]:
            # A vector costs nothing twice.
            if min(arrays[tied].shape) > 1 and np.array_equal(arrays[tied], arrays[original].T):
                derived = Nodes(graph, graph[0]).op("Transpose", [original], perm=[1, 0])
                derived.name = f"{original.name}.transposed"
                tied.replace_all_uses_with(derived)
                del graph.initializers[str(tied.name)]
                break
