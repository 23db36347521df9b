"""Products with a constant matrix, as the exporter writes them.

Shapes: K inputs, N outputs.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from dragoman_export.graphs.builder import constant_array


@dataclass(frozen=True)
class MatrixProduct:
    """What a MatMul or Gemm multiplies and adds."""

    rows: ir.Value
    """[..., K]."""
    matrix: ir.Value
    """The initializer: [N, K] if `is_transposed`, else [K, N]."""
    array: NDArray[np.float32]
    """Of that shape."""
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

    @property
    def by_output(self) -> NDArray[np.float32]:
        """[K, N], either way."""
        return self.array.T if self.is_transposed else self.array


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


def float_matrix(value: ir.Value | None) -> NDArray[np.float32] | None:
    """The array of a constant matrix of floats; None for any other value."""
    array = constant_array(value)
    return array if array is not None and array.ndim == 2 and array.dtype == np.float32 else None


def row_constant(value: ir.Value | None) -> NDArray[np.float32] | None:
    """The array of a constant vector, which a sum adds to every row; None for any other value."""
    array = constant_array(value)
    return array if array is not None and array.ndim == 1 else None
