"""The constants of an ONNX graph: making and reading them, and keeping a tied matrix once."""

from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx_ir.tape import Tape


def make_constant(name: str, array: NDArray[np.generic] | np.generic) -> ir.Value:
    """A constant that holds a copy of the array; a graph has it once it is registered as an initializer."""
    return make_view(name, np.array(array, order="C"))


def make_view(name: str, array: NDArray[np.generic]) -> ir.Value:
    """A constant that is the array itself, transposed or mapped from a file as it may be."""
    tensor = ir.Tensor(array, name=name)
    return ir.Value(
        name=name, shape=ir.Shape(tensor.shape.numpy()), type=ir.TensorType(tensor.dtype), const_value=tensor
    )


def initializer(graph: ir.Graph, name: str, array: NDArray[np.generic] | np.generic) -> ir.Value:
    """The graph's initializer of that name, made of the array where there is none yet."""
    if name not in graph.initializers:
        graph.register_initializer(make_constant(name, array))
    found = graph.initializers[name]
    stored = constant_array(found)
    assert stored is not None
    assert stored.dtype == array.dtype, f"{name} is of {stored.dtype}"
    assert np.array_equal(stored, array), f"{name} holds something else"
    return found


def there(value: ir.Value | None) -> ir.Value:
    """An input of a node that is not left out."""
    assert value is not None
    return value


def constant_array(value: ir.Value | None) -> NDArray[Any] | None:
    """The array of an initializer; None for any other value."""
    if value is None or value.producer() is not None or value.const_value is None:
        return None
    array: NDArray[Any] = value.const_value.numpy()
    return array


def share_transposed(graph: ir.Graph) -> None:
    """Derives a matrix that is the transpose of another one from it, so that a tied weight is stored once.

    The exporter folds the transpose of an output layer that is tied to an embedding. onnxruntime does the
    same when it loads the graph, so nothing is transposed at run time.
    """
    matrices = [
        value for value in graph.initializers.values() if value.shape is not None and len(value.shape) == 2
    ]
    arrays = {value: constant_array(value) for value in matrices}
    for tied in matrices:
        for original in matrices[: matrices.index(tied)]:
            if _is_transposed(arrays[tied], arrays[original]):
                tape = Tape()
                derived = tape.op("Transpose", [original], {"perm": [1, 0]})
                graph.insert_before(graph[0], tape.nodes)
                derived.name = f"{original.name}.transposed"
                tied.replace_all_uses_with(derived)
                del graph.initializers[str(tied.name)]
                break


def _is_transposed(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    assert one is not None
    assert other is not None
    # A vector costs nothing twice.
    return min(one.shape) > 1 and one.shape == other.shape[::-1] and np.array_equal(one, other.T)
