"""A float32 graph as an int8 graph, and the weights that stay in fp32 in it, known by their names.

A window that is predicted (Luong et al. 2015, equation 9) ends sharply: where rounding moves it, positions
come in or drop out, and a token's score jumps. So what predicts it is not rounded. Nor is what makes the
attentional state, whose rounding reaches the output layer and, as it is fed back, the next window.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType

import onnx_ir as ir
from onnx_ir.passes.common import CommonSubexpressionEliminationPass, RemoveUnusedNodesPass

from dragoman_export.int8.bounded import bounded_values
from dragoman_export.int8.graph import Int8Graph
from dragoman_export.int8.linear import replace_embedding, replace_product
from dragoman_export.int8.recurrent import replace_recurrent
from dragoman_export.int8.sums import merge_sum
from dragoman_export.reference.imported import StoredWeight

HIDDEN = "window.hidden.weight"
"""What the name of a predictor's matrix ends in, behind its model's."""
BESIDE = ("window.direction_2H", "combine.weight")
"""What else such a model keeps in fp32."""


def kept_weights(graph: ir.Graph) -> set[str]:
    """The names of these weights in a graph, whose members may each have a window or not."""
    models = [name.removesuffix(HIDDEN) for name in graph.initializers if name.endswith(f".{HIDDEN}")]
    return {f"{model}{weight}" for model in models for weight in (HIDDEN, *BESIDE)}


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
