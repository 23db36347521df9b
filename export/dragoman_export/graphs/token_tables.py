"""Products of a token's embedding, looked up rather than multiplied at every step.

A recurrent cell multiplies the embedding of each token that it reads, the same few thousand vectors at every
step. So the whole embedding is multiplied, and rows of that are gathered. Both factors are constants, and
onnxruntime multiplies them once, when it loads the graph: a bundle is no larger.

Shapes: V vocabulary, E embedding width, N outputs.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from onnx_ir.tape import Tape

from dragoman_export.graphs.builder import constant_array, initializer, there
from dragoman_export.int8.linear import float_matrix, matrix_product

MAX_TABLE_BYTES = 32 << 20
"""Largest table: every session of every engine has one of its own."""


@dataclass(frozen=True)
class _Lookup:
    """Rows of an embedding on their way to a product."""

    embedding: ir.Value
    """[V, E] initializer."""
    vocabulary: int
    """V."""
    token: ir.Value
    """Whose rows are looked up."""
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
        node, is_flattened = there(node.inputs[0]).producer(), True
    if node is not None and node.op_type == "Mul":
        factor = there(node.inputs[1])
        scalar = constant_array(factor)
        if scalar is None or scalar.size != 1:
            return None
        node = there(node.inputs[0]).producer()
    if node is None or node.op_type != "Gather" or node.attributes.get_int("axis", 0) != 0:
        return None
    embedding, token = (there(value) for value in node.inputs)
    array = float_matrix(embedding)
    return None if array is None else _Lookup(embedding, len(array), token, factor, is_flattened)


def _look_up(step: ir.Graph, node: ir.Node, lookup: _Lookup, outputs: int) -> None:
    """Puts rows of a product of the whole embedding in the place of the product of its rows."""
    (old,) = node.outputs
    tape = Tape()
    table = tape.op(node.op_type, [lookup.embedding, *node.inputs[1:]], dict(node.attributes))
    table.shape, table.type = ir.Shape([lookup.vocabulary, outputs]), old.type
    rows = tape.op("Gather", [table, lookup.token])
    if lookup.factor is not None:
        rows = tape.op("Mul", [rows, lookup.factor])
    if lookup.is_flattened:
        shape = initializer(step, f"token_tables.rows_of_{outputs}", np.array([-1, outputs]))
        rows = tape.op("Reshape", [rows, shape])
    step.insert_before(node, tape.nodes)
    rows.name, rows.shape, rows.type = old.name, old.shape, old.type
    table.name, old.name = f"{old.name}.table", f"{old.name}.replaced"
    old.replace_all_uses_with(rows)
    step.remove(node, safe=True)
