"""An LSTM or GRU node as an int8 input product and a scan over int8 recurrent products.

Two directions run in one scan, their sentences below each other: what one of them reads from the end is
turned around before, and its states are turned back after. So a position takes hardly more nodes for two
directions than for one; with few sentences nodes are what takes time. Before a sentence begins and after it
has ended its state is 0, whatever the batch has there.

Shapes: S sentences, N directions, R = N·S rows, T source positions, D input width, H hidden units, G gates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir
from onnx_ir.tape import Tape

from dragoman_export.graphs.builder import make_value, stored_array, there
from dragoman_export.int8.graph import LARGEST, Int8Graph, Int8Weight

DIRECTIONS = {"forward": ("forward",), "bidirectional": ("forward", "backward")}
"""Names of the directions that a node's attribute stands for."""
GATES = {"LSTM": 4, "GRU": 3}
NUM_STATES = {"LSTM": 2, "GRU": 1}


@dataclass(frozen=True)
class Direction:
    """What one direction of a scan works with."""

    projected: ir.Value
    """Input products with biases in the order that it reads them, [T, S, G·H]."""
    inside: ir.Value
    """1 for those of these positions that are within a sentence, and 0 for others, [T, S, 1] float32."""
    recurrent_weight: Int8Weight
    """[H, G·H]."""
    recurrent_bias: ir.Value | None
    """[G·H], where it can't be part of `projected`: a GRU's, which its reset gate multiplies."""


def replace_recurrent(int8: Int8Graph, node: ir.Node) -> None:
    """Rewrites a forward or bidirectional node with sequence lengths and zero initial states.

    A GRU's must be of `linear_before_reset`.
    """
    assert node.op_type == "LSTM" or node.attributes.get_int("linear_before_reset", 0) == 1
    names = DIRECTIONS[node.attributes.get_string("direction", "forward")]
    length, hidden_size = there(node.inputs[4]), stored_array(node.inputs[2]).shape[2]
    tape = Tape()
    inside = _inside(int8, tape, there(node.inputs[0]), length)
    directions = [_direction(int8, tape, node, place, name, inside) for place, name in enumerate(names)]
    projected_TRG = _join(tape, [each.projected for each in directions], axis=1)
    inside_TR1 = _join(tape, [each.inside for each in directions], axis=1)
    zeros = _zero_state(int8, tape, inside_TR1, hidden_size)
    num_states = NUM_STATES[node.op_type]
    # An LSTM's cells are only kept at every position where its last ones are asked for.
    num_kept = max(1, len(node.outputs) - 1)
    scanned = tape.op_multi_out(
        "Scan",
        [*[zeros] * num_states, projected_TRG, inside_TR1],
        {"body": _body(int8, node.op_type, directions, hidden_size, num_kept), "num_scan_inputs": 2},
        num_outputs=num_states + num_kept,
    )[num_states:]
    states = [
        [
            _in_time(int8, tape, value, name)
            for value, name in zip(_part(tape, values_TRH, len(names), axis=1), names, strict=True)
        ]
        for values_TRH in (tape.op("Mul", [values, inside_TR1]) for values in scanned)
    ]
    last = [
        [_last(int8, tape, value, name, length) for value, name in zip(values, names, strict=True)]
        for values in states
    ]
    results = [_stack(int8, tape, states[0], 1), *(_stack(int8, tape, values, 0) for values in last)]
    int8.replace(node, tape, results[: len(node.outputs)])


def _direction(
    int8: Int8Graph, tape: Tape, node: ir.Node, place: int, direction: str, inside: ir.Value
) -> Direction:
    input_weight, recurrent_weight, biases = map(stored_array, node.inputs[1:4])
    input_name, recurrent_name, bias_name = (f"{there(value).name}.{direction}" for value in node.inputs[1:4])
    input_bias, recurrent_bias = np.split(biases[place], 2)
    separate = node.op_type == "GRU"
    weight = int8.weight(input_name, input_weight[place].T, output_axis=1)
    bias = int8.constant(f"{bias_name}.input", input_bias if separate else input_bias + recurrent_bias)
    rows = int8.rows(tape, there(node.inputs[0]), weight.num_outputs)
    rows = replace(
        rows,
        codes=_in_time(int8, tape, rows.codes, direction),
        step=None if rows.step is None else _in_time(int8, tape, rows.step, direction),
    )
    return Direction(
        projected=int8.product(tape, rows, weight, bias),
        inside=_in_time(int8, tape, inside, direction),
        recurrent_weight=int8.weight(recurrent_name, recurrent_weight[place].T, output_axis=1),
        recurrent_bias=int8.constant(f"{bias_name}.recurrent", recurrent_bias) if separate else None,
    )


def _inside(int8: Int8Graph, tape: Tape, source: ir.Value, length: ir.Value) -> ir.Value:
    """1 for positions within a sentence, 0 for others: [T, S, 1] float32."""
    zero, one = int8.constant("int8.zero", np.int64(0)), int8.constant("int8.one", np.int64(1))
    positions = tape.op("Squeeze", [tape.op("Shape", [source], {"start": 0, "end": 1})])
    position_T1 = tape.op("Unsqueeze", [tape.op("Range", [zero, positions, one]), int8.last_axis])
    length_S = tape.op("Cast", [length], {"to": ir.DataType.INT64})
    inside_TS = tape.op("Cast", [tape.op("Less", [position_T1, length_S])], {"to": ir.DataType.FLOAT})
    return tape.op("Unsqueeze", [inside_TS, int8.last_axis])


def _last(int8: Int8Graph, tape: Tape, states: ir.Value, direction: str, length: ir.Value) -> ir.Value:
    """Of states [T, S, H] in their own order those where a direction ends: [S, H]."""
    zero, one = int8.constant("int8.zero", np.int64(0)), int8.constant("int8.one", np.int64(1))
    if direction == "backward":
        return tape.op("Gather", [states, zero])
    end_S = tape.op("Sub", [tape.op("Cast", [length], {"to": ir.DataType.INT64}), one])
    sentence_S = tape.op("Range", [zero, tape.op("Squeeze", [tape.op("Shape", [length])]), one])
    place_S2 = [tape.op("Unsqueeze", [value, int8.last_axis]) for value in (end_S, sentence_S)]
    return tape.op("GatherND", [states, tape.op("Concat", place_S2, {"axis": -1})])


def _in_time(int8: Int8Graph, tape: Tape, value: ir.Value, direction: str) -> ir.Value:
    """Positions [T, ...] in the order that a direction reads them, or from that order back in their own."""
    if direction == "forward":
        return value
    first, last = np.array([-1], np.int64), np.array([np.iinfo(np.int64).min], np.int64)
    start, end = int8.constant("int8.from_the_end", first), int8.constant("int8.to_the_beginning", last)
    return tape.op("Slice", [value, start, end, int8.constant("int8.axis_0", np.array([0], np.int64)), start])


def _zero_state(int8: Int8Graph, tape: Tape, inside: ir.Value, hidden_size: int) -> ir.Value:
    """[R, H] zeros."""
    width = int8.constant(f"int8.width_{hidden_size}", np.array([hidden_size], np.int64))
    rows = tape.op("Shape", [inside], {"start": 1, "end": 2})
    return tape.op("ConstantOfShape", [tape.op("Concat", [rows, width], {"axis": 0})])


def _join(tape: Tape, values: Sequence[ir.Value], *, axis: int) -> ir.Value:
    """The directions' values one after the other."""
    return values[0] if len(values) == 1 else tape.op("Concat", values, {"axis": axis})


def _part(tape: Tape, value: ir.Value, num_directions: int, *, axis: int) -> Sequence[ir.Value]:
    """What `_join` joined."""
    if num_directions == 1:
        return [value]
    attributes = {"axis": axis, "num_outputs": num_directions}
    return tape.op_multi_out("Split", [value], attributes, num_outputs=num_directions)


def _stack(int8: Int8Graph, tape: Tape, values: Sequence[ir.Value], axis: int) -> ir.Value:
    """The directions' values side by side on a new axis."""
    place = int8.constant(f"int8.axis_{axis}", np.array([axis], np.int64))
    return tape.op("Concat", [tape.op("Unsqueeze", [value, place]) for value in values], {"axis": axis})


def _body(
    int8: Int8Graph, operator: str, directions: list[Direction], hidden_size: int, num_kept: int
) -> ir.Graph:
    """One position: old states, projected, inside -> new states, and of these the first as they come out."""
    tape = Tape()
    widths = {f"state_{place}": hidden_size for place in range(NUM_STATES[operator])}
    widths |= {"projected": GATES[operator] * hidden_size, "inside": 1}
    *old, projected, inside = (
        make_value(name, ["R", width], ir.DataType.FLOAT) for name, width in widths.items()
    )
    rows = int8.quantize_by(tape, old[0], 1 / LARGEST)
    codes = _part(tape, rows.codes, len(directions), axis=0)
    products = [
        int8.product(tape, replace(rows, codes=each), direction.recurrent_weight, direction.recurrent_bias)
        for each, direction in zip(codes, directions, strict=True)
    ]
    cell = _lstm_cell if operator == "LSTM" else _gru_cell
    new = cell(tape, projected, _join(tape, products, axis=0), old)
    states = [tape.op("Mul", [value, inside]) for value in new]
    # A body must not use names of the graph around it.
    for place, value in enumerate(value for node in tape.nodes for value in node.outputs):
        value.name = f"position.{place}"
    outputs = [*states, *new[:num_kept]]
    for value in outputs:
        value.shape, value.dtype = ir.Shape(["R", hidden_size]), ir.DataType.FLOAT
    return ir.Graph([*old, projected, inside], outputs, nodes=tape.nodes, name="position")


def _lstm_cell(tape: Tape, projected: ir.Value, recurrent: ir.Value, old: list[ir.Value]) -> list[ir.Value]:
    """Gates in ONNX's order, i o f c."""
    gates = tape.op_multi_out(
        "Split", [tape.op("Add", [projected, recurrent])], {"axis": -1, "num_outputs": 4}, num_outputs=4
    )
    i, o, f = (tape.op("Sigmoid", [gate]) for gate in gates[:3])
    entering = tape.op("Mul", [i, tape.op("Tanh", [gates[3]])])
    cell = tape.op("Add", [tape.op("Mul", [f, old[1]]), entering])
    return [tape.op("Mul", [o, tape.op("Tanh", [cell])]), cell]


def _gru_cell(tape: Tape, projected: ir.Value, recurrent: ir.Value, old: list[ir.Value]) -> list[ir.Value]:
    """Gates in ONNX's order, z r h, with `linear_before_reset`."""
    inputs = tape.op_multi_out("Split", [projected], {"axis": -1, "num_outputs": 3}, num_outputs=3)
    recurrents = tape.op_multi_out("Split", [recurrent], {"axis": -1, "num_outputs": 3}, num_outputs=3)
    z, r = (tape.op("Sigmoid", [tape.op("Add", [inputs[gate], recurrents[gate]])]) for gate in range(2))
    candidate = tape.op("Tanh", [tape.op("Add", [inputs[2], tape.op("Mul", [r, recurrents[2]])])])
    return [tape.op("Add", [candidate, tape.op("Mul", [z, tape.op("Sub", [old[0], candidate])])])]
