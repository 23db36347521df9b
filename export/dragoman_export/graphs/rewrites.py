"""Rewrites of traced decoder steps: products of embeddings looked up, and the output layer found.

A recurrent cell multiplies the embedding of each token that it reads, the same few thousand vectors at every
step. So the whole embedding is multiplied, and rows of that are gathered. Both factors are constants, and
onnxruntime multiplies them once, when it loads the graph: a bundle is no larger.

Shapes: R rows, D width, V vocabulary, E embedding width, N outputs.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from dragoman_export.graphs.builder import Nodes, constant_array, required, stored_array
from dragoman_export.int8.graph import PRODUCT
from dragoman_export.int8.linear import float_matrix, matrix_product

MAX_TABLE_BYTES = 32 << 20
"""Largest table: every session of every engine has one of its own."""


@dataclass(frozen=True)
class _Lookup:
    """Rows of an embedding on their way to a product."""

    embedding: ir.Value
    """[V, E] initializer."""
    vocabulary: int
    token: ir.Value
    factor: ir.Value | None
    """A constant that all of them are multiplied by."""
    is_flattened: bool
    """Whether they then are made a matrix."""


def look_up_token_products(step: ir.Graph) -> None:
    """Has embeddings multiplied by a constant matrix before rows of them are gathered.

    Leaves those whose table would be larger than MAX_TABLE_BYTES.
    """
    for node in list(step):
        product = matrix_product(node)
        lookup = None if product is None else _find_lookup(product.rows)
        if product is None or lookup is None or (lookup.factor is not None and product.bias is not None):
            continue
        if lookup.vocabulary * product.num_outputs * product.array.itemsize <= MAX_TABLE_BYTES:
            _look_up(step, node, lookup, product.num_outputs)


def _find_lookup(rows: ir.Value) -> _Lookup | None:
    node, factor, is_flattened = rows.producer(), None, False
    if node is not None and node.op_type == "Reshape":
        shape = constant_array(node.inputs[1])
        if shape is None or rows.shape is None or shape.tolist() != [-1, rows.shape[-1]]:
            return None
        node, is_flattened = required(node.inputs[0]).producer(), True
    if node is not None and node.op_type == "Mul":
        factor = required(node.inputs[1])
        scalar = constant_array(factor)
        if scalar is None or scalar.size != 1:
            return None
        node = required(node.inputs[0]).producer()
    if node is None or node.op_type != "Gather" or node.attributes.get_int("axis", 0) != 0:
        return None
    embedding, token = (required(value) for value in node.inputs)
    array = float_matrix(embedding)
    return None if array is None else _Lookup(embedding, len(array), token, factor, is_flattened)


def _look_up(step: ir.Graph, node: ir.Node, lookup: _Lookup, outputs: int) -> None:
    """Puts rows of a product of the whole embedding in the place of the product of its rows."""
    (old,) = node.outputs
    nodes = Nodes(step, node)
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    shape = [lookup.vocabulary, outputs]
    table = nodes.op(node.op_type, [lookup.embedding, *node.inputs[1:]], shape, old.dtype, **attributes)
    table.name = f"{old.name}.table"
    rows = nodes.op("Gather", [table, lookup.token])
    if lookup.factor is not None:
        rows = nodes.op("Mul", [rows, lookup.factor])
    if lookup.is_flattened:
        sizes = nodes.named(f"token_tables.rows_of_{outputs}", np.array([-1, outputs]))
        rows = nodes.op("Reshape", [rows, sizes])
    nodes.replace(node, rows)


@dataclass(frozen=True, kw_only=True)
class OutputProduct:
    """The nodes' values from the features to the logits. In int8 rows and weight are codes with scales."""

    rows: ir.Value
    """[R, D]: the features, or their codes."""
    step: ir.Value | None
    """What all rows' codes count in; None where the product is of floats."""
    row_step: ir.Value | None
    """[R, 1]: a factor of each row's own beside that; None where there is none."""
    weight: ir.Value
    """[V, D] initializer: the tied embedding, an ensemble's side by side, or its codes."""
    weight_scale: ir.Value | None
    """[V] initializer: what the weight's codes count in; None where the product is of floats."""
    bias: ir.Value

    @property
    def shape(self) -> tuple[int, ...]:
        """V and D."""
        return stored_array(self.weight).shape


def find_output_product(step: ir.Graph) -> OutputProduct:
    """Walks back from the only LogSoftmax: a sum with a bias, a product with the transposed embedding."""
    logits, row_step = _logits(step), None
    if logits.op_type == PRODUCT:
        product, bias = logits, required(logits.inputs[-1])
    else:
        product, bias = _apart(logits)
    if product.op_type == "Mul":
        row_step, product = required(product.inputs[1]), _producer(product.inputs[0])
    if product.op_type == "MatMul":
        rows, transposed = product.inputs
        scale = shared = None
    else:
        assert product.op_type == PRODUCT
        rows, transposed, shared, scale = product.inputs[:4]
    return OutputProduct(
        rows=required(rows),
        step=shared,
        row_step=row_step,
        weight=required(_producer(transposed).inputs[0]),
        weight_scale=scale,
        bias=bias,
    )


def store_by_rows(step: ir.Graph) -> None:
    """Stores the matrix of a float output layer that is tied to no embedding as [V, D], as one that is.

    The exporter folds its transpose; but a shortlist gathers rows of it. onnxruntime folds it again when it
    loads the graph.
    """
    product, _ = _apart(_logits(step))
    weight = required(product.inputs[1])
    array = constant_array(weight)
    if array is None:
        return
    nodes = Nodes(step, step[0])
    rows = nodes.named(f"{weight.name}.rows", array.T)
    product.replace_input_with(1, nodes.op("Transpose", [rows], perm=[1, 0]))
    del step.initializers[str(weight.name)]


def _logits(step: ir.Graph) -> ir.Node:
    """The sum that gives the logits, or the int8 product that has a bias in it."""
    (softmax,) = (node for node in step if node.op_type == "LogSoftmax")
    total = _producer(softmax.inputs[0])
    if total.op_type == "Cast":
        total = _producer(total.inputs[0])
    assert total.op_type in ("Add", PRODUCT)
    return total


def _apart(node: ir.Node) -> tuple[ir.Node, ir.Value]:
    """The node that gives one of two inputs, and the constant that is the other."""
    one, other = (required(value) for value in node.inputs)
    if constant_array(one) is not None:
        one, other = other, one
    assert constant_array(other) is not None
    return _producer(one), other


def _producer(value: ir.Value | None) -> ir.Node:
    node = required(value).producer()
    assert node is not None
    return node
