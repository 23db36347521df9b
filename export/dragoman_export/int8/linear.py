"""Products with constant matrices, and embeddings, in int8."""

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx_ir.tape import Tape

from dragoman_export.initializers import constant_array
from dragoman_export.int8.graph import Int8Graph, StoredWeight

POSITIONS = ".positions.table_LD"
"""What the name of a Transformer's table of positions ends in."""


def replace_product(int8: Int8Graph, node: ir.Node) -> None:
    """Rewrites a MatMul or Gemm whose second factor is a constant matrix; leaves any other as it is.

    What was concatenated to be multiplied is multiplied part by part: each has a step of its own, so that
    small values aren't rounded by the step of large ones beside them. A single column stays float: there is
    nothing to gain in it.
    """
    rows, factor, *bias = node.inputs
    is_transposed = node.attributes.get_int("transB", 0) == 1
    producer = factor.producer() if factor is not None else None
    if producer is not None and producer.op_type == "Transpose":
        factor, is_transposed = producer.inputs[0], not is_transposed
    matrix = _float_matrix(factor)
    if rows is None or factor is None or matrix is None or matrix.shape[0 if is_transposed else 1] == 1:
        return
    assert all(node.attributes.get_float(name, 1.0) == 1.0 for name in ("alpha", "beta"))
    assert not node.attributes.get_int("transA", 0)
    tape = Tape()
    output_axis = 0 if is_transposed else 1
    parts = _concatenated(int8, tape, rows)
    ends = np.cumsum([width for _, width in parts])[:-1]
    products = []
    for place, piece in enumerate(np.split(matrix, ends, axis=1 - output_axis)):
        name = str(factor.name) if len(parts) == 1 else f"{factor.name}.part{place}"
        weight = int8.weight(name, piece, output_axis=output_axis)
        if is_transposed:
            weight = StoredWeight(tape.op("Transpose", [weight.codes], {"perm": [1, 0]}), weight.scale)
        products.append(int8.product(tape, int8.rows(tape, parts[place][0]), weight))
    result = products[0]
    for product in products[1:]:
        result = tape.op("Add", [result, product])
    if bias:
        result = tape.op("Add", [result, bias[0]])
    int8.replace(node, tape, [result])


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
    int8.replace(node, tape, [tape.op("Mul", [codes, scale])])


def _concatenated(int8: Int8Graph, tape: Tape, rows: ir.Value) -> list[tuple[ir.Value, int]]:
    """The parts, and their widths, that were concatenated along the last axis to these rows; or the rows."""
    node, is_flattened = rows.producer(), False
    if node is not None and node.op_type == "Reshape":
        node, is_flattened = _there(node.inputs[0]).producer(), True
    whole = [(rows, _width(rows))]
    if node is None or node.op_type != "Concat" or _width(node.outputs[0]) != _width(rows):
        return whole
    parts = [(_there(part), _width(_there(part))) for part in node.inputs]
    assert rows.shape is not None
    if sum(width for _, width in parts) != _width(rows) or (is_flattened and len(rows.shape) != 2):
        return whole
    if not is_flattened:
        return parts
    return [
        (tape.op("Reshape", [part, int8.constant(f"int8.rows_of_{width}", np.array([-1, width]))]), width)
        for part, width in parts
    ]


def _width(value: ir.Value) -> int:
    assert value.shape is not None
    width = value.shape[-1]
    assert isinstance(width, int)
    return width


def _there(value: ir.Value | None) -> ir.Value:
    assert value is not None
    return value


def _float_matrix(value: ir.Value | None) -> NDArray[np.float32] | None:
    array = constant_array(value)
    return array if array is not None and array.ndim == 2 and array.dtype == np.float32 else None
