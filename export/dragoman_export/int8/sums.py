"""A sum of products as one product, of what was multiplied side by side.

A recurrent cell adds up what its token, its feed and its last hidden state are multiplied to. Rows that count
in the same steps are multiplied together, by their matrices on top of each other: additions within a product
cost nothing, and each product or addition less is a pass less. A sum's constants become the product's bias.
"""

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx_ir.tape import Tape

from dragoman_export.graphs.builder import width_of
from dragoman_export.int8.graph import Int8Graph, is_wide
from dragoman_export.int8.linear import MatrixProduct, matrix_product, row_constant


def merge_sum(int8: Int8Graph, root: ir.Node) -> None:
    """Makes one product of a sum's products of bounded rows [R, K], where together they share a step.

    `root` is an Add; what it adds may be sums themselves. A product that is used elsewhere too stays apart.
    """
    (total,) = root.outputs
    if _only_use(total) == "Add" or total.shape is None:
        return
    products: dict[ir.Value, MatrixProduct] = {}
    summands = _summands(root)
    for value in summands:
        product = matrix_product(value.producer())
        if product is not None and _can_be_merged(int8, value, product, total):
            products[value] = product
    inputs = sum(width_of(product.rows) for product in products.values())
    if len(products) < 2 or not is_wide(inputs, width_of(total)):
        return
    tape = Tape()
    others: list[ir.Value] = []
    biases = [product.bias for product in products.values()]
    constants = [array for array in map(row_constant, biases) if array is not None]
    for value in summands:
        if value in products:
            continue
        rest, constant = _without_constant(tape, value, total.shape[-1])
        others += [] if rest is None else [rest]
        constants += [] if constant is None else [constant]
    matrix = np.concatenate([product.by_output for product in products.values()])
    rows = tape.op("Concat", [product.rows for product in products.values()], {"axis": -1})
    rows.shape, rows.dtype = ir.Shape([total.shape[0], len(matrix)]), ir.DataType.FLOAT
    int8.bounded.add(rows)
    result = tape.op("MatMul", [rows, int8.constant(f"{total.name}.matrix", matrix)])
    result.shape, result.dtype = total.shape, ir.DataType.FLOAT
    if constants:
        result = tape.op("Add", [result, int8.constant(f"{total.name}.bias", np.sum(constants, axis=0))])
    for other in others:
        result = tape.op("Add", [other, result])
    int8.replace(root, tape, [result])


def _can_be_merged(int8: Int8Graph, value: ir.Value, product: MatrixProduct, total: ir.Value) -> bool:
    """Whether it is of bounded rows, as many as the sum has, and its bias is no obstacle."""
    rows, has_bias = product.rows, product.bias is not None
    return (
        rows in int8.bounded
        and rows.shape is not None
        and total.shape is not None
        and len(rows.shape) == len(total.shape) == 2
        and rows.shape[0] == total.shape[0]
        and _only_use(value) == "Add"
        and (not has_bias or row_constant(product.bias) is not None)
    )


def _summands(root: ir.Node) -> list[ir.Value]:
    """What a sum adds up, down to what is no sum, or is used elsewhere too."""
    found: list[ir.Value] = []
    for value in root.inputs:
        assert value is not None
        node = value.producer()
        is_sum = node is not None and node.op_type == "Add" and _only_use(value) == "Add"
        found += _summands(node) if node is not None and is_sum else [value]
    return found


def _without_constant(
    tape: Tape, value: ir.Value, width: int | ir.SymbolicDim
) -> tuple[ir.Value | None, NDArray[np.float32] | None]:
    """What a summand adds to every row of that width; and the summand without it, if it is more than that.

    Where rows were given another shape after a constant was added, it can be added after that.
    """
    array = row_constant(value)
    if array is not None and len(array) == width:
        return None, array
    reshape = value.producer()
    if reshape is None or reshape.op_type != "Reshape":
        return value, None
    before = reshape.inputs[0]
    adding = before.producer() if before is not None else None
    if before is None or adding is None or adding.op_type != "Add" or _only_use(before) != "Reshape":
        return value, None
    for rest, constant in (adding.inputs, adding.inputs[::-1]):
        array = row_constant(constant)
        if array is not None and before.shape is not None and len(array) == before.shape[-1] == width:
            return tape.op("Reshape", [rest, reshape.inputs[1]]), array
    return value, None


def _only_use(value: ir.Value) -> str | None:
    """The operator of the one node that uses a value; None where it is used elsewhere too."""
    uses = value.uses()
    if value.is_graph_output() or len(uses) != 1:
        return None
    return next(iter(uses)).node.op_type
