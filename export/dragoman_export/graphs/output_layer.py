"""The output layer in a decoder-step graph: what goes into its product, and the constants it has.

Shapes: R rows, D width, V target vocabulary.
"""

from dataclasses import dataclass

import onnx_ir as ir
from onnx_ir.tape import Tape

from dragoman_export.graphs.builder import constant_array, make_constant, there
from dragoman_export.int8.graph import PRODUCT


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
    """[V] initializer."""

    @property
    def weight_type(self) -> ir.DataType:
        """Element type of the weight, or of its codes."""
        assert self.weight.dtype is not None
        return self.weight.dtype


def find_output_product(step: ir.Graph) -> OutputProduct:
    """Walks back from the only LogSoftmax: a sum with a bias, a product with the transposed embedding."""
    logits, row_step = _logits(step), None
    if logits.op_type == PRODUCT:
        product, bias = logits, there(logits.inputs[-1])
    else:
        product, bias = _apart(logits)
    if product.op_type == "Mul":
        row_step, product = there(product.inputs[1]), _producer(product.inputs[0])
    if product.op_type == "MatMul":
        rows, transposed = product.inputs
        scale = shared = None
    else:
        assert product.op_type == PRODUCT
        rows, transposed, shared, scale = product.inputs[:4]
    return OutputProduct(
        rows=there(rows),
        step=shared,
        row_step=row_step,
        weight=_original(transposed),
        weight_scale=scale,
        bias=bias,
    )


def store_by_rows(step: ir.Graph) -> None:
    """Stores the matrix of a float output layer that is tied to no embedding as [V, D], as one that is.

    The exporter folds its transpose; but a shortlist gathers rows of it. onnxruntime folds it again when it
    loads the graph.
    """
    product, _ = _apart(_logits(step))
    weight = there(product.inputs[1])
    array = constant_array(weight)
    if array is None:
        return
    rows = make_constant(f"{weight.name}.rows", array.T)
    step.register_initializer(rows)
    tape = Tape()
    product.replace_input_with(1, tape.op("Transpose", [rows], {"perm": [1, 0]}))
    step.insert_before(step[0], tape.nodes)
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
    one, other = (there(value) for value in node.inputs)
    if constant_array(one) is not None:
        one, other = other, one
    assert constant_array(other) is not None
    return _producer(one), other


def _original(transposed: ir.Value | None) -> ir.Value:
    node = _producer(transposed)
    assert node.op_type == "Transpose"
    assert constant_array(node.inputs[0]) is not None
    return there(node.inputs[0])


def _producer(value: ir.Value | None) -> ir.Node:
    node = there(value).producer()
    assert node is not None
    return node
