"""A float32 graph as an int8 graph: what of it is bounded, and the weights that stay in fp32, known by names.

What lies within -1 and 1, whatever comes in, can count in steps of 1/127 for all rows alike, and none is ever
cut off. A window that is predicted (Luong et al. 2015, equation 9) ends sharply: where rounding moves it,
positions come in or drop out, and a token's score jumps. So what predicts it is not rounded. Nor is what
makes the attentional state, whose rounding reaches the output layer and, as it is fed back, the next window.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import onnx_ir as ir
from onnx_ir.passes.common import CommonSubexpressionEliminationPass, RemoveUnusedNodesPass

from dragoman_export.graphs.builder import constant_array
from dragoman_export.int8.graph import Int8Graph
from dragoman_export.int8.linear import merge_sum, replace_embedding, replace_product
from dragoman_export.int8.recurrent import replace_recurrent
from dragoman_export.reference.imported import StoredWeight

SQUASHED = {"Tanh", "Sigmoid"}
RECURRENT = {"LSTM", "GRU", "RNN"}
"""The operators whose states, y and y_h, are bounded, but for those of a ReLU: each is a tanh, or a gate's
share of one."""
MOVED = ("Gather", "Reshape", "Transpose", "Slice", "Split", "Squeeze", "Unsqueeze", "Expand", "Identity")
"""Operators whose results are values of their first input."""
ALL = slice(None)
JOINED = {**dict.fromkeys(MOVED, slice(1)), "Concat": ALL, "Mul": ALL, "Where": slice(1, None)}
"""Operators whose results are bounded where these of their inputs are."""
STATE, NEW_STATE = "state.", "next_state."
"""Prefixes of a state that a step is given, and of what it makes of it."""


def bounded_values(graph: ir.Graph, given: Collection[str] = ()) -> set[ir.Value]:
    """The values that are bounded, where the inputs of the given names are."""
    found = {value for value in graph.inputs if value.name in given}
    for node in graph:
        found.update(_bounded_results(node, found))
    return found


def _bounded_results(node: ir.Node, known: Collection[ir.Value]) -> Sequence[ir.Value]:
    operator = node.op_type
    if operator in RECURRENT and "Relu" not in node.attributes.get_strings("activations", ()):
        return node.outputs[:2]
    if operator in SQUASHED or (operator == "ConstantOfShape" and "value" not in node.attributes):
        return node.outputs
    if operator in JOINED and all(_is_bounded(value, known) for value in node.inputs[JOINED[operator]]):
        return node.outputs
    return ()


def _is_bounded(value: ir.Value | None, known: Collection[ir.Value]) -> bool:
    """Whether a value is bounded. Of constants only zeros are: what others scale down is too small for steps
    of 1/127."""
    array = constant_array(value)
    return value in known if array is None else not array.any()


def bounded_states(encoder: ir.Graph, step: ir.Graph) -> set[str]:
    """The states that are bounded at every step: at first, and after a step wherever they were before it."""
    values = bounded_values(encoder)
    states = {str(value.name) for value in encoder.outputs if value in values}
    states = {name for name in states if name.startswith(STATE)}
    while True:
        values = bounded_values(step, states)
        after = {str(value.name) for value in step.outputs if value in values}
        kept = {name for name in states if name.replace(STATE, NEW_STATE, 1) in after}
        if kept == states:
            return states
        states = kept


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
