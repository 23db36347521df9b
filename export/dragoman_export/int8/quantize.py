"""A float32 graph as an int8 graph."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

import onnx_ir as ir
from onnx_ir.passes.common import CommonSubexpressionEliminationPass, RemoveUnusedNodesPass

from dragoman_export.int8.bounded import bounded_values
from dragoman_export.int8.graph import Int8Graph
from dragoman_export.int8.kept import kept_weights
from dragoman_export.int8.linear import replace_embedding, replace_product
from dragoman_export.int8.recurrent import replace_recurrent
from dragoman_export.int8.sums import merge_sum
from dragoman_export.reference.imported import StoredWeight

REWRITES = {
    "LSTM": replace_recurrent,
    "GRU": replace_recurrent,
    "MatMul": replace_product,
    "Gemm": replace_product,
    "Gather": replace_embedding,
}


def quantize(
    model: ir.Model,
    bounded_inputs: Collection[str] = (),
    steps: Mapping[str, float] = MappingProxyType({}),
    stored: Mapping[str, StoredWeight] = MappingProxyType({}),
) -> ir.Model:
    """A copy with all products with constant matrices, recurrent layers and token embeddings in int8.

    Products with the weights of `kept_weights` stay as they are.
    Inputs of the given names are known to lie within -1 and 1. Values that are named in `steps` are rounded
    in these for all rows; others in each row's own. The codes of `stored` weights are taken as they are.
    """
    model = model.clone()
    bounded = bounded_values(model.graph, bounded_inputs)
    int8 = Int8Graph(model.graph, bounded, kept_weights(model.graph), steps, stored)
    for node in list(model.graph):
        if node.op_type == "Add":
            merge_sum(int8, node)
    for node in list(model.graph):
        if node.op_type in REWRITES:
            REWRITES[node.op_type](int8, node)
    RemoveUnusedNodesPass()(model)
    # Each direction of a recurrent layer has made a mask of its own.
    CommonSubexpressionEliminationPass()(model)
    return model
