"""What of a graph lies within -1 and 1, whatever comes in.

Such values can count in steps of 1/127 for all rows alike, and none is ever cut off.
"""

from collections.abc import Collection, Sequence

import onnx_ir as ir

from dragoman_export.graphs.builder import constant_array

SQUASHED = {"Tanh", "Sigmoid"}
"""Operators whose results are bounded."""
RECURRENT = {"LSTM", "GRU", "RNN"}
"""Of these the states are, y and y_h, but for those of a ReLU: each is a tanh, or a gate's share of one."""
MOVED = ("Gather", "Reshape", "Transpose", "Slice", "Split", "Squeeze", "Unsqueeze", "Expand", "Identity")
"""Operators whose results are values of their first input."""
JOINED = {
    **dict.fromkeys(MOVED, slice(1)),
    "Concat": slice(None),
    "Mul": slice(None),
    "Where": slice(1, None),
}
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
    """Of constants only zeros are: what others scale down is too small for steps of 1/127."""
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
