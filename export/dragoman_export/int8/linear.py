"""Products with constant matrices, and embeddings, in int8."""

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx_ir.tape import Tape

from dragoman_export.initializers import constant_array
from dragoman_export.int8.graph import ZERO_POINT, Int8Graph, QuantizedRows, StoredWeight, width_of

POSITIONS = ".positions.table_LD"
"""What the name of a Transformer's table of positions ends in."""


def replace_product(int8: Int8Graph, node: ir.Node) -> None:
    """Rewrites a MatMul or Gemm whose second factor is a constant matrix; leaves any other as it is.

    What was concatenated to be multiplied is multiplied part by part: each has a step of its own, so that
    small values aren't rounded by the step of large ones beside them. A single column stays float: there is
    nothing to gain in it.
    """
    rows, factor, *biases = node.inputs
    is_transposed = node.attributes.get_int("transB", 0) == 1
    producer = factor.producer() if factor is not None else None
    if producer is not None and producer.op_type == "Transpose":
        factor, is_transposed = producer.inputs[0], not is_transposed
    matrix = _float_matrix(factor)
    if rows is None or factor is None or matrix is None or matrix.shape[0 if is_transposed else 1] == 1:
        return
    assert all(node.attributes.get_float(name, 1.0) == 1.0 for name in ("alpha", "beta"))
    assert not node.attributes.get_int("transA", 0)
    bias, last = (biases[0], node) if biases else _added_bias(node)
    tape = Tape()
    output_axis = 0 if is_transposed else 1
    outputs = matrix.shape[output_axis]
    parts, is_flattened = _concatenated(rows)
    ends = np.cumsum([width_of(part) for part in parts])[:-1]
    products = []
    for place, piece in enumerate(np.split(matrix, ends, axis=1 - output_axis)):
        name = str(factor.name) if len(parts) == 1 else f"{factor.name}.part{place}"
        weight = int8.weight(name, piece, output_axis=output_axis)
        if is_transposed:
            weight = StoredWeight(tape.op("Transpose", [weight.codes], {"perm": [1, 0]}), weight.scale)
        rows_of_part = int8.rows(tape, parts[place], outputs)
        products.append(int8.product(tape, rows_of_part, weight, bias if place == 0 else None))
    result = products[0]
    for product in products[1:]:
        result = tape.op("Add", [result, product])
    if is_flattened:
        shape = int8.constant(f"int8.rows_of_{outputs}", np.array([-1, outputs]))
        result = tape.op("Reshape", [result, shape])
    int8.replace(last, tape, [result])


def replace_embedding(int8: Int8Graph, node: ir.Node) -> None:
    """Rewrites a Gather of rows of a constant matrix; leaves any other as it is, and positions.

    Those are few rows: in int8 they would cost more in precision and time than they save.
    """
    table, ids = node.inputs
    matrix = _float_matrix(table)
    if table is None or matrix is None or node.attributes.get_int("axis", 0) != 0:
        return
    if str(table.name).endswith(POSITIONS):
        return
    tape = Tape()
    weight = int8.weight(str(table.name), matrix, output_axis=0)
    codes = tape.op("Cast", [tape.op("Gather", [weight.codes, ids])], {"to": ir.DataType.FLOAT})
    scale = tape.op("Unsqueeze", [tape.op("Gather", [weight.scale, ids]), int8.last_axis])
    embedding = tape.op("Mul", [codes, scale])
    offset = int8.constant("int8.zero_point_float", np.float32(ZERO_POINT))
    unsigned = tape.op("Cast", [tape.op("Add", [codes, offset])], {"to": ir.DataType.UINT8})
    int8.replace(node, tape, [embedding])
    # Where it is multiplied, nothing is rounded again.
    int8.know_rows(embedding, QuantizedRows(codes=unsigned, step=scale))


def _added_bias(node: ir.Node) -> tuple[ir.Value | None, ir.Node]:
    """A constant vector that is added to all that a node gives, and the node that adds it; or none."""
    (product,) = node.outputs
    if product.is_graph_output() or len(product.uses()) != 1:
        return None, node
    ((consumer, place),) = product.uses()
    if consumer.op_type != "Add":
        return None, node
    bias = consumer.inputs[1 - place]
    array = constant_array(bias)
    is_bias = array is not None and array.shape == (width_of(product),)
    return (bias, consumer) if is_bias else (None, node)


def _concatenated(rows: ir.Value) -> tuple[list[ir.Value], bool]:
    """The parts that were concatenated along the last axis to these rows; or the rows.

    And whether what was concatenated was then flattened to rows, which the parts are not.
    """
    node, is_flattened = rows.producer(), False
    if node is not None and node.op_type == "Reshape":
        node, is_flattened = _there(node.inputs[0]).producer(), True
    if node is None or node.op_type != "Concat" or width_of(node.outputs[0]) != width_of(rows):
        return [rows], False
    parts = [_there(part) for part in node.inputs]
    assert rows.shape is not None
    if sum(map(width_of, parts)) != width_of(rows) or (is_flattened and len(rows.shape) != 2):
        return [rows], False
    return parts, is_flattened


def _there(value: ir.Value | None) -> ir.Value:
    assert value is not None
    return value


def _float_matrix(value: ir.Value | None) -> NDArray[np.float32] | None:
    array = constant_array(value)
    return array if array is not None and array.ndim == 2 and array.dtype == np.float32 else None
