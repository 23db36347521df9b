"""Products with constant matrices, sums of them, and embeddings, as the exporter writes them and in int8.

A recurrent cell adds up what its token, its feed and its last hidden state are multiplied to. Rows that count
in the same steps are multiplied together, by their matrices on top of each other: additions within a product
cost nothing, and each product or addition less is a pass less. A sum's constants become the product's bias.

Shapes: K inputs, N outputs.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from dragoman_export.graphs.builder import constant_array, required, width_of
from dragoman_export.int8.graph import ZERO_POINT, Int8Graph, Int8Weight, is_wide
from dragoman_export.reference.imported import Floats


@dataclass(frozen=True)
class MatrixProduct:
    """What a MatMul or Gemm multiplies and adds."""

    rows: ir.Value
    """[..., K]."""
    matrix: ir.Value
    """The initializer: [N, K] if `is_transposed`, else [K, N]."""
    array: Floats
    is_transposed: bool
    bias: ir.Value | None
    """[N]: what a Gemm adds."""

    @property
    def num_outputs(self) -> int:
        """N."""
        return self.array.shape[self.output_axis]

    @property
    def output_axis(self) -> int:
        """The matrix's axis of outputs."""
        return 0 if self.is_transposed else 1


def matrix_product(node: ir.Node | None) -> MatrixProduct | None:
    """A MatMul or Gemm whose second factor is a constant matrix; None for any other node."""
    if node is None or node.op_type not in ("MatMul", "Gemm"):
        return None
    rows, matrix, *biases = node.inputs
    is_transposed = node.attributes.get_int("transB", 0) == 1
    producer = matrix.producer() if matrix is not None else None
    if producer is not None and producer.op_type == "Transpose" and _swaps_axes(producer):
        matrix, is_transposed = producer.inputs[0], not is_transposed
    array = float_matrix(matrix)
    if rows is None or matrix is None or array is None:
        return None
    assert all(node.attributes.get_float(name, 1.0) == 1.0 for name in ("alpha", "beta"))
    assert not node.attributes.get_int("transA", 0)
    return MatrixProduct(rows, matrix, array, is_transposed, biases[0] if biases else None)


def _swaps_axes(transpose: ir.Node) -> bool:
    """Whether it gives a matrix transposed, which is what it does unless told otherwise."""
    return list(transpose.attributes.get_ints("perm", (1, 0))) == [1, 0]


def float_matrix(value: ir.Value | None) -> Floats | None:
    """The array of a constant matrix of floats; None for any other value."""
    array = constant_array(value)
    return array if array is not None and array.ndim == 2 and array.dtype == np.float32 else None


def row_constant(value: ir.Value | None) -> Floats | None:
    """The array of a constant vector, which a sum adds to every row; None for any other value."""
    array = constant_array(value)
    return array if array is not None and array.ndim == 1 else None


POSITIONS = "positions.table_LD"
"""What the name of a Transformer's table of positions ends in, of either side."""


def replace_product(int8: Int8Graph, node: ir.Node) -> None:
    """Rewrites a MatMul or Gemm whose second factor is a constant matrix; leaves any other as it is.

    What was concatenated to be multiplied is multiplied part by part, unless all rows share a step: each part
    has steps of its own, so that small values aren't rounded by the step of large ones beside them. A single
    column stays float: there is nothing to gain in it.
    """
    found = matrix_product(node)
    if found is None or found.num_outputs == 1 or found.matrix.name in int8.kept:
        return
    embedding = float_matrix(found.rows)
    if embedding is not None:
        _replace_table(int8, node, found, embedding)
        return
    bias, last = (found.bias, node) if found.bias is not None else _added_bias(node)
    int8.place, outputs = last, found.num_outputs
    shares = int8.share_a_step(found.rows, outputs)
    parts, is_flattened = ([found.rows], False) if shares else _concatenated(found.rows)
    ends = np.cumsum([width_of(part) for part in parts])[:-1]
    products = []
    for place, piece in enumerate(np.split(found.array, ends, axis=1 - found.output_axis)):
        name = str(found.matrix.name)
        if len(parts) > 1:
            name += f".part_{place}_of_{'_'.join(str(width_of(part)) for part in parts)}"
        weight = int8.weight(name, piece, output_axis=found.output_axis)
        if found.is_transposed:
            weight = Int8Weight(int8.op("Transpose", [weight.codes], perm=[1, 0]), weight.scale)
        products.append(int8.product(int8.rows(parts[place], outputs), weight, bias if place == 0 else None))
    result = products[0]
    for product in products[1:]:
        result = int8.op("Add", [result, product])
    if is_flattened:
        result = int8.op("Reshape", [result, int8.named(f"int8.rows_of_{outputs}", np.array([-1, outputs]))])
    int8.replace(last, result)


def _replace_table(int8: Int8Graph, node: ir.Node, product: MatrixProduct, embedding: Floats) -> None:
    """Rewrites the product of two constant matrices, which onnxruntime multiplies when it loads the graph: as
    floats, for whose products alone it does that. Sums of codes are exact in these as well."""
    int8.place = node
    rows = int8.weight(str(product.rows.name), embedding, output_axis=0)
    columns = int8.weight(str(product.matrix.name), product.array, output_axis=product.output_axis)
    codes = (rows.codes, columns.codes)
    rows_VE, columns_EN = (int8.op("Cast", [each], to=ir.DataType.FLOAT) for each in codes)
    if product.is_transposed:
        columns_EN = int8.op("Transpose", [columns_EN], perm=[1, 0])
    table_VN = int8.op("Mul", [int8.op("MatMul", [rows_VE, columns_EN]), columns.scale])
    table_VN = int8.op("Mul", [table_VN, int8.op("Unsqueeze", [rows.scale, int8.last_axis])])
    if product.bias is not None:
        table_VN = int8.op("Add", [table_VN, product.bias])
    int8.replace(node, table_VN)


def replace_embedding(int8: Int8Graph, node: ir.Node) -> None:
    """Rewrites a Gather of rows of a constant matrix; leaves any other as it is, and positions.

    Those are few rows: in int8 they would cost more in precision and time than they save.
    """
    table, ids = node.inputs
    matrix = float_matrix(table)
    if table is None or matrix is None or node.attributes.get_int("axis", 0) != 0:
        return
    if str(table.name).endswith(POSITIONS):
        return
    int8.place = node
    weight = int8.weight(str(table.name), matrix, output_axis=0)
    codes = int8.op("Cast", [int8.op("Gather", [weight.codes, ids])], to=ir.DataType.FLOAT)
    scale = int8.op("Unsqueeze", [int8.op("Gather", [weight.scale, ids]), int8.last_axis])
    embedding = int8.op("Mul", [codes, scale])
    offset = int8.named("int8.zero_point_float", np.float32(ZERO_POINT))
    unsigned = int8.op("Cast", [int8.op("Add", [codes, offset])], to=ir.DataType.UINT8)
    int8.replace(node, embedding)
    # Where it is multiplied, nothing is rounded again.
    int8.know_rows(embedding, int8.own_steps(unsigned, scale))


def _added_bias(node: ir.Node) -> tuple[ir.Value | None, ir.Node]:
    """A constant vector that is added to all that a node gives, and the node that adds it; or none."""
    (product,) = node.outputs
    if product.is_graph_output() or len(product.uses()) != 1:
        return None, node
    ((consumer, place),) = product.uses()
    if consumer.op_type != "Add":
        return None, node
    bias = consumer.inputs[1 - place]
    array = row_constant(bias)
    is_bias = array is not None and len(array) == width_of(product)
    return (bias, consumer) if is_bias else (None, node)


def _concatenated(rows: ir.Value) -> tuple[list[ir.Value], bool]:
    """The parts that were concatenated along the last axis to these rows, or the rows; and whether they were
    then flattened to rows, which the parts are not."""
    node, is_flattened = rows.producer(), False
    if node is not None and node.op_type == "Reshape":
        node, is_flattened = required(node.inputs[0]).producer(), True
    if node is None or node.op_type != "Concat" or width_of(node.outputs[0]) != width_of(rows):
        return [rows], False
    parts = [required(part) for part in node.inputs]
    assert rows.shape is not None
    if sum(map(width_of, parts)) != width_of(rows) or (is_flattened and len(rows.shape) != 2):
        return [rows], False
    return parts, is_flattened


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
    int8.place = root
    others: list[ir.Value] = []
    biases = [product.bias for product in products.values()]
    constants = [array for array in map(row_constant, biases) if array is not None]
    for value in summands:
        if value in products:
            continue
        rest, constant = _without_constant(int8, value, total.shape[-1])
        others += [] if rest is None else [rest]
        constants += [] if constant is None else [constant]
    merged = products.values()
    parts = [each.rows for each in merged]
    matrix = np.concatenate([each.array.T if each.is_transposed else each.array for each in merged])
    rows = int8.op("Concat", parts, [total.shape[0], len(matrix)], ir.DataType.FLOAT, axis=-1)
    int8.bounded.add(rows)
    weight = int8.named(f"{total.name}.matrix", matrix)
    result = int8.op("MatMul", [rows, weight], total.shape, ir.DataType.FLOAT)
    if constants:
        result = int8.op("Add", [result, int8.named(f"{total.name}.bias", np.sum(constants, axis=0))])
    for other in others:
        result = int8.op("Add", [other, result])
    int8.replace(root, result)


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
    int8: Int8Graph, value: ir.Value, width: int | ir.SymbolicDim
) -> tuple[ir.Value | None, Floats | None]:
    """What a summand adds to every row of that width; and the summand without it, if it is more than that.
    Where rows were given another shape after a constant was added, it can be added after that."""
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
            return int8.op("Reshape", [rest, reshape.inputs[1]]), array
    return value, None


def _only_use(value: ir.Value) -> str | None:
    """The operator of the one node that uses a value; None where it is used elsewhere too."""
    uses = value.uses()
    if value.is_graph_output() or len(uses) != 1:
        return None
    return next(iter(uses)).node.op_type
