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

from dragoman_export.graphs.builder import required, stored_array
from dragoman_export.int8.graph import LARGEST, Int8Graph, Int8Weight

DIRECTIONS = {"forward": ("forward",), "bidirectional": ("forward", "backward")}
"""Names of the directions that a node's attribute stands for."""
GATES = {"LSTM": 4, "GRU": 3}
NUM_STATES = {"LSTM": 2, "GRU": 1}
Values = list[ir.Value]


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
    length, hidden_size = required(node.inputs[4]), stored_array(node.inputs[2]).shape[2]
    int8.place = node
    inside = _inside(int8, required(node.inputs[0]), length)
    directions = [_direction(int8, node, place, name, inside) for place, name in enumerate(names)]
    projected_TRG = _join(int8, [each.projected for each in directions], axis=1)
    inside_TR1 = _join(int8, [each.inside for each in directions], axis=1)
    # [R, H] zeros.
    width = int8.named(f"int8.width_{hidden_size}", np.array([hidden_size], np.int64))
    rows = int8.op("Shape", [inside_TR1], start=1, end=2)
    zeros = int8.op("ConstantOfShape", [int8.op("Concat", [rows, width], axis=0)])
    num_states = NUM_STATES[node.op_type]
    # An LSTM's cells are only kept at every position where its last ones are asked for.
    num_kept = max(1, len(node.outputs) - 1)
    scanned = int8.ops(
        "Scan",
        [*[zeros] * num_states, projected_TRG, inside_TR1],
        [None] * (num_states + num_kept),
        body=_body(int8, node.op_type, directions, hidden_size, num_kept),
        num_scan_inputs=2,
    )[num_states:]
    masked = [int8.op("Mul", [values, inside_TR1]) for values in scanned]
    parts = [zip(_part(int8, values_TRH, len(names), axis=1), names, strict=True) for values_TRH in masked]
    states = [[_in_time(int8, value, name) for value, name in each] for each in parts]
    named = [zip(values, names, strict=True) for values in states]
    last = [[_last(int8, value, name, length) for value, name in each] for each in named]
    results = [_stack(int8, states[0], 1), *(_stack(int8, values, 0) for values in last)]
    int8.replace(node, *results[: len(node.outputs)])


def _direction(int8: Int8Graph, node: ir.Node, place: int, direction: str, inside: ir.Value) -> Direction:
    input_weight, recurrent_weight, biases = map(stored_array, node.inputs[1:4])
    given = map(required, node.inputs[1:4])
    input_name, recurrent_name, bias_name = (f"{value.name}.{direction}" for value in given)
    input_bias, recurrent_bias = np.split(biases[place], 2)
    separate = node.op_type == "GRU"
    weight = int8.weight(input_name, input_weight[place].T, output_axis=1)
    bias = int8.named(f"{bias_name}.input", input_bias if separate else input_bias + recurrent_bias)
    rows = int8.rows(required(node.inputs[0]), weight.num_outputs)
    codes = _in_time(int8, rows.codes, direction)
    step = None if rows.step is None else _in_time(int8, rows.step, direction)
    return Direction(
        projected=int8.product(replace(rows, codes=codes, step=step), weight, bias),
        inside=_in_time(int8, inside, direction),
        recurrent_weight=int8.weight(recurrent_name, recurrent_weight[place].T, output_axis=1),
        recurrent_bias=int8.named(f"{bias_name}.recurrent", recurrent_bias) if separate else None,
    )


def _inside(int8: Int8Graph, source: ir.Value, length: ir.Value) -> ir.Value:
    """1 for positions within a sentence, 0 for others: [T, S, 1] float32."""
    zero, one = int8.named("int8.zero", np.int64(0)), int8.named("int8.one", np.int64(1))
    positions = int8.op("Squeeze", [int8.op("Shape", [source], start=0, end=1)])
    position_T1 = int8.op("Unsqueeze", [int8.op("Range", [zero, positions, one]), int8.last_axis])
    length_S = int8.op("Cast", [length], to=ir.DataType.INT64)
    inside_TS = int8.op("Cast", [int8.op("Less", [position_T1, length_S])], to=ir.DataType.FLOAT)
    return int8.op("Unsqueeze", [inside_TS, int8.last_axis])


def _last(int8: Int8Graph, states: ir.Value, direction: str, length: ir.Value) -> ir.Value:
    """The states [S, H] where a direction ends, of all [T, S, H] in their own order."""
    zero, one = int8.named("int8.zero", np.int64(0)), int8.named("int8.one", np.int64(1))
    if direction == "backward":
        return int8.op("Gather", [states, zero])
    end_S = int8.op("Sub", [int8.op("Cast", [length], to=ir.DataType.INT64), one])
    sentence_S = int8.op("Range", [zero, int8.op("Squeeze", [int8.op("Shape", [length])]), one])
    place_S2 = [int8.op("Unsqueeze", [value, int8.last_axis]) for value in (end_S, sentence_S)]
    return int8.op("GatherND", [states, int8.op("Concat", place_S2, axis=-1)])


def _in_time(int8: Int8Graph, value: ir.Value, direction: str) -> ir.Value:
    """Positions [T, ...] in the order that a direction reads them, or from that order back in their own."""
    if direction == "forward":
        return value
    first, last = np.array([-1], np.int64), np.array([np.iinfo(np.int64).min], np.int64)
    start, end = int8.named("int8.from_the_end", first), int8.named("int8.to_the_beginning", last)
    return int8.op("Slice", [value, start, end, _axis(int8, 0), start])


def _axis(int8: Int8Graph, axis: int) -> ir.Value:
    return int8.named(f"int8.axis_{axis}", np.array([axis], np.int64))


def _join(int8: Int8Graph, values: Sequence[ir.Value], *, axis: int) -> ir.Value:
    return values[0] if len(values) == 1 else int8.op("Concat", values, axis=axis)


def _part(int8: Int8Graph, value: ir.Value, parts: int, *, axis: int = -1) -> Sequence[ir.Value]:
    """What `_join` joined, or gates side by side."""
    if parts == 1:
        return [value]
    return int8.ops("Split", [value], [None] * parts, axis=axis, num_outputs=parts)


def _stack(int8: Int8Graph, values: Sequence[ir.Value], axis: int) -> ir.Value:
    """The directions' values side by side on a new axis."""
    stacked = [int8.op("Unsqueeze", [value, _axis(int8, axis)]) for value in values]
    return int8.op("Concat", stacked, axis=axis)


def _body(int8: Int8Graph, operator: str, directions: list[Direction], units: int, num_kept: int) -> ir.Graph:
    """One position: old states, projected, inside -> new states, and of these the first as they come out."""
    widths = {f"state_{place}": units for place in range(NUM_STATES[operator])}
    widths |= {"projected": GATES[operator] * units, "inside": 1}
    with int8.within("position") as body:
        *old, projected, inside = (
            int8.input(name, ["R", width], ir.DataType.FLOAT) for name, width in widths.items()
        )
        rows = int8.quantize_by(old[0], 1 / LARGEST)
        codes = _part(int8, rows.codes, len(directions), axis=0)
        products = [
            int8.product(replace(rows, codes=each), direction.recurrent_weight, direction.recurrent_bias)
            for each, direction in zip(codes, directions, strict=True)
        ]
        cell = _lstm_cell if operator == "LSTM" else _gru_cell
        new = cell(int8, projected, _join(int8, products, axis=0), old)
        states = [int8.op("Mul", [value, inside]) for value in new]
        body.outputs.extend([*states, *new[:num_kept]])
    for value in body.outputs:
        value.shape, value.dtype = ir.Shape(["R", units]), ir.DataType.FLOAT
    return body


def _lstm_cell(int8: Int8Graph, projected: ir.Value, recurrent: ir.Value, old: Values) -> Values:
    """Gates in ONNX's order, i o f c."""
    gates = _part(int8, int8.op("Add", [projected, recurrent]), 4)
    i, o, f = (int8.op("Sigmoid", [gate]) for gate in gates[:3])
    entering = int8.op("Mul", [i, int8.op("Tanh", [gates[3]])])
    cell = int8.op("Add", [int8.op("Mul", [f, old[1]]), entering])
    return [int8.op("Mul", [o, int8.op("Tanh", [cell])]), cell]


def _gru_cell(int8: Int8Graph, projected: ir.Value, recurrent: ir.Value, old: Values) -> Values:
    """Gates in ONNX's order, z r h, with `linear_before_reset`."""
    inputs, recurrents = (_part(int8, value, 3) for value in (projected, recurrent))
    z, r = (int8.op("Sigmoid", [int8.op("Add", [inputs[gate], recurrents[gate]])]) for gate in range(2))
    candidate = int8.op("Tanh", [int8.op("Add", [inputs[2], int8.op("Mul", [r, recurrents[2]])])])
    return [int8.op("Add", [candidate, int8.op("Mul", [z, int8.op("Sub", [old[0], candidate])])])]
