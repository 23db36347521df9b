"""An LSTM or GRU node as an int8 input product and a scan over int8 recurrent products.

Two directions run in one scan, one of them from the last position to the first. A sentence's state is only
replaced at its own positions, so a state at padding is that of the sentence's end, or of its beginning.

Shapes: S sentences, T source positions, D input width, H hidden units, G gates.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from onnx_ir.tape import Tape

from dragoman_export.initializers import constant_array
from dragoman_export.int8.graph import Int8Graph, StoredWeight

DIRECTIONS = {"forward": ("forward",), "bidirectional": ("forward", "backward")}
"""Names of the directions that a node's attribute stands for."""
GATES = {"LSTM": 4, "GRU": 3}
NUM_STATES = {"LSTM": 2, "GRU": 1}


@dataclass(frozen=True)
class Direction:
    """What one direction of a scan works with."""

    name: str
    """One of `DIRECTIONS`."""
    projected: ir.Value
    """Input products with biases, [T, S, G·H]."""
    recurrent_weight: StoredWeight
    """[H, G·H]."""
    recurrent_bias: ir.Value | None
    """[G·H], where it can't be part of `projected`: a GRU's, which its reset gate multiplies."""


def replace_recurrent(int8: Int8Graph, node: ir.Node) -> None:
    """Rewrites a forward or bidirectional node with sequence lengths and zero initial states."""
    names = DIRECTIONS[node.attributes.get_string("direction", "forward")]
    source, _, recurrent, _, length = node.inputs
    recurrent_array = constant_array(recurrent)
    assert source is not None
    assert length is not None
    assert recurrent_array is not None
    hidden_size = recurrent_array.shape[2]
    tape = Tape()
    directions = [_direction(int8, tape, node, place, name) for place, name in enumerate(names)]
    inside = _inside(int8, tape, source, length)
    zeros = _zero_state(int8, tape, length, hidden_size)
    num_states = NUM_STATES[node.op_type]
    body = _body(int8, node.op_type, directions, hidden_size)
    outputs = tape.op_multi_out(
        "Scan",
        [
            *[zeros] * (num_states * len(names)),
            *(value for direction in directions for value in (direction.projected, inside)),
        ],
        {
            "body": body,
            "num_scan_inputs": 2 * len(names),
            "scan_input_directions": [0, 0, 1, 1][: 2 * len(names)],
            "scan_output_directions": [0, 1][: len(names)],
        },
        num_outputs=num_states * len(names) + len(names),
    )
    last = outputs[0 : num_states * len(names) : num_states]
    results = [_stack(int8, tape, outputs[-len(names) :], 1), _stack(int8, tape, last, 0)]
    if node.op_type == "LSTM":
        cells = outputs[1 : num_states * len(names) : num_states]
        results.append(_stack(int8, tape, cells, 0))
    int8.replace(node, tape, results[: len(node.outputs)])


def _direction(int8: Int8Graph, tape: Tape, node: ir.Node, place: int, direction: str) -> Direction:
    source = node.inputs[0]
    input_weight, recurrent_weight, biases = (constant_array(value) for value in node.inputs[1:4])
    assert source is not None
    assert input_weight is not None
    assert recurrent_weight is not None
    assert biases is not None
    name = f"{node.inputs[1].name}.{direction}"  # type: ignore[union-attr]
    input_bias, recurrent_bias = np.split(biases[place], 2)
    separate = node.op_type == "GRU"
    weight = int8.weight(f"{name}.input", input_weight[place].T, output_axis=1)
    bias = int8.constant(f"{name}.bias", input_bias if separate else input_bias + recurrent_bias)
    return Direction(
        name=direction,
        projected=int8.product(tape, int8.rows(tape, source, weight.num_outputs), weight, bias),
        recurrent_weight=int8.weight(f"{name}.recurrent", recurrent_weight[place].T, output_axis=1),
        recurrent_bias=int8.constant(f"{name}.recurrent_bias", recurrent_bias) if separate else None,
    )


def _inside(int8: Int8Graph, tape: Tape, source: ir.Value, length: ir.Value) -> ir.Value:
    """Which positions are within a sentence: [T, S, 1] bool."""
    zero, one = int8.constant("int8.zero", np.int64(0)), int8.constant("int8.one", np.int64(1))
    positions = tape.op("Squeeze", [tape.op("Shape", [source], {"start": 0, "end": 1})])
    position_T1 = tape.op("Unsqueeze", [tape.op("Range", [zero, positions, one]), int8.last_axis])
    length_S = tape.op("Cast", [length], {"to": ir.DataType.INT64})
    return tape.op("Unsqueeze", [tape.op("Less", [position_T1, length_S]), int8.last_axis])


def _zero_state(int8: Int8Graph, tape: Tape, length: ir.Value, hidden_size: int) -> ir.Value:
    """[S, H] zeros."""
    width = int8.constant(f"int8.width_{hidden_size}", np.array([hidden_size], np.int64))
    shape = tape.op("Concat", [tape.op("Shape", [length]), width], {"axis": 0})
    return tape.op("ConstantOfShape", [shape])


def _stack(int8: Int8Graph, tape: Tape, values: Sequence[ir.Value], axis: int) -> ir.Value:
    """The directions' values side by side on a new axis."""
    place = int8.constant(f"int8.axis_{axis}", np.array([axis], np.int64))
    return tape.op("Concat", [tape.op("Unsqueeze", [value, place]) for value in values], {"axis": axis})


def _body(int8: Int8Graph, operator: str, directions: list[Direction], hidden_size: int) -> ir.Graph:
    """One position of all directions: their states, then projected and inside of each -> states, outputs."""
    tape = Tape()
    zero = int8.constant("int8.zero_float", np.float32(0))
    gates_size = GATES[operator] * hidden_size
    state_inputs: list[ir.Value] = []
    scan_inputs: list[ir.Value] = []
    states: list[ir.Value] = []
    outputs: list[ir.Value] = []
    for direction in directions:
        name = direction.name
        old = [_input(f"{name}.state_{place}", ["S", hidden_size]) for place in range(NUM_STATES[operator])]
        projected = _input(f"{name}.projected", ["S", gates_size])
        inside = _input(f"{name}.inside", ["S", 1], ir.DataType.BOOL)
        rows = int8.quantize_bounded_rows(tape, old[0])
        recurrent = int8.product(tape, rows, direction.recurrent_weight, direction.recurrent_bias)
        cell = _lstm_cell if operator == "LSTM" else _gru_cell
        new = cell(int8, tape, projected, recurrent, old)
        states += [tape.op("Where", [inside, after, before]) for after, before in zip(new, old, strict=True)]
        outputs.append(tape.op("Where", [inside, new[0], zero]))
        state_inputs += old
        scan_inputs += [projected, inside]
    # A body must not use names of the graph around it.
    for place, value in enumerate(value for node in tape.nodes for value in node.outputs):
        value.name = f"position.{place}"
    for value in (*states, *outputs):
        value.shape, value.dtype = ir.Shape(["S", hidden_size]), ir.DataType.FLOAT
    return ir.Graph([*state_inputs, *scan_inputs], [*states, *outputs], nodes=tape.nodes, name="position")


def _lstm_cell(
    int8: Int8Graph, tape: Tape, projected: ir.Value, recurrent: ir.Value, old: list[ir.Value]
) -> list[ir.Value]:
    """Gates in ONNX's order, i o f c."""
    gates = tape.op_multi_out(
        "Split", [tape.op("Add", [projected, recurrent])], {"axis": -1, "num_outputs": 4}, num_outputs=4
    )
    i, o, f = (tape.op("Sigmoid", [gate]) for gate in gates[:3])
    entering = tape.op("Mul", [i, tape.op("Tanh", [gates[3]])])
    cell = tape.op("Add", [tape.op("Mul", [f, old[1]]), entering])
    return [tape.op("Mul", [o, tape.op("Tanh", [cell])]), cell]


def _gru_cell(
    int8: Int8Graph, tape: Tape, projected: ir.Value, recurrent: ir.Value, old: list[ir.Value]
) -> list[ir.Value]:
    """Gates in ONNX's order, z r h, with `linear_before_reset`."""
    inputs = tape.op_multi_out("Split", [projected], {"axis": -1, "num_outputs": 3}, num_outputs=3)
    recurrents = tape.op_multi_out("Split", [recurrent], {"axis": -1, "num_outputs": 3}, num_outputs=3)
    z, r = (tape.op("Sigmoid", [tape.op("Add", [inputs[gate], recurrents[gate]])]) for gate in range(2))
    candidate = tape.op("Tanh", [tape.op("Add", [inputs[2], tape.op("Mul", [r, recurrents[2]])])])
    return [tape.op("Add", [candidate, tape.op("Mul", [z, tape.op("Sub", [old[0], candidate])])])]


def _input(name: str, shape: list[int | str], dtype: ir.DataType = ir.DataType.FLOAT) -> ir.Value:
    return ir.Value(name=name, shape=ir.Shape(shape), type=ir.TensorType(dtype))
