"""A graph that is written node by node, and filled with a model's weights; and the constants of any graph.

Every value has its type, and a shape as far as passes behind this ask for it: the last axis, and what enters
and leaves the graph. Nothing is computed and no weight is copied here.

Shapes: K inputs and N outputs of a matrix.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

OPSET = 20
"""The newest that onnxruntime's CUDA kernels for LSTM, GRU and TopK all cover."""
GROWTH = "U"
"""Name of the axis along which a state grows by one per step. It is 0 long when it leaves the encoder."""
KERNELS = "com.microsoft"
"""onnxruntime's own operators."""

Size = int | str
Shape = Sequence[Size | ir.SymbolicDim | None]
AnyShape = Shape | ir.Shape | None
Numbers = int | float | Sequence[int]
Attribute = int | float | str | Sequence[int] | ir.TensorProtocol | ir.Graph


def make_view(name: str, array: NDArray[np.generic]) -> ir.Value:
    """A constant that is the array itself, transposed or mapped from a file as it may be."""
    tensor = ir.Tensor(array, name=name)
    return ir.Value(
        name=name, shape=ir.Shape(tensor.shape.numpy()), type=ir.TensorType(tensor.dtype), const_value=tensor
    )


def required(value: ir.Value | None) -> ir.Value:
    """An input of a node that is not left out."""
    assert value is not None
    return value


def constant_array(value: ir.Value | None) -> NDArray[Any] | None:
    """The array of an initializer; None for any other value."""
    if value is None or value.producer() is not None or value.const_value is None:
        return None
    return value.const_value.numpy()


def stored_array(value: ir.Value | None) -> NDArray[Any]:
    """The array of what must be an initializer."""
    array = constant_array(value)
    assert array is not None
    return array


def width_of(value: ir.Value) -> int:
    """The last axis of a value, whose size is known."""
    assert value.shape is not None
    width = value.shape[-1]
    assert isinstance(width, int)
    return width


@dataclass(frozen=True)
class Graphs:
    """The two graphs of one precision."""

    encoder: ir.Model
    decoder_step: ir.Model


class Nodes:
    """Adds nodes to a graph, at its end or before the node `place`; and named constants."""

    infers_types = False
    """Whether a value has the type of its node's first input where none is given."""

    def __init__(self, graph: ir.Graph, place: ir.Node | None = None) -> None:
        self.graph = self._inside = graph
        self.place = place

    def input(self, name: str, shape: Shape, dtype: ir.DataType) -> ir.Value:
        value = ir.Value(name=name, shape=ir.Shape(shape), type=ir.TensorType(dtype))
        self._inside.inputs.append(value)
        return value

    def output(self, name: str, value: ir.Value, shape: Shape) -> None:
        """Has the graph return a value, which no node's input has yet been named after."""
        if value.is_graph_output():
            value = self.op("Identity", [value], value.shape)
        value.name, value.shape = name, ir.Shape(shape)
        self.graph.outputs.append(value)

    def model(self) -> ir.Model:
        """The finished graph."""
        return ir.Model(self.graph, ir_version=10)

    def named(self, name: str, array: NDArray[np.generic] | np.generic) -> ir.Value:
        """The graph's constant of that name, made of a copy of the array where there is none yet."""
        if name not in self.graph.initializers:
            self.graph.register_initializer(make_view(name, np.array(array, order="C")))
        found = self.graph.initializers[name]
        stored = stored_array(found)
        assert stored.dtype == array.dtype, f"{name} is of {stored.dtype}"
        assert np.array_equal(stored, array), f"{name} holds something else"
        return found

    def op(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        shape: AnyShape = None,
        dtype: ir.DataType | None = None,
        *,
        domain: str = "",
        **attributes: Attribute,
    ) -> ir.Value:
        """A node's only result."""
        return self.ops(op_type, inputs, [shape], [dtype], domain=domain, **attributes)[0]

    def ops(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        shapes: Sequence[AnyShape],
        dtypes: Sequence[ir.DataType | None] | None = None,
        *,
        domain: str = "",
        **attributes: Attribute,
    ) -> Sequence[ir.Value]:
        """A node's results, one for each shape."""
        node = ir.node(op_type, inputs, attributes, domain=domain, num_outputs=len(shapes))
        if self.place is None:
            self._inside.append(node)
        else:
            self._inside.insert_before(self.place, node)
        if domain:
            self.graph.opset_imports[domain] = 1
        known = inputs[0].dtype if self.infers_types and inputs and inputs[0] is not None else None
        for value, shape, dtype in zip(node.outputs, shapes, dtypes or [None] * len(shapes), strict=True):
            if (own := dtype or known) is not None:
                value.dtype = own
            value.shape = None if shape is None else ir.Shape(shape)
        return node.outputs

    @contextmanager
    def within(self, name: str) -> Iterator[ir.Graph]:
        """A graph within this one, which takes inputs and nodes meanwhile; its constants are this one's."""
        graph = ir.Graph([], [], nodes=[], name=name)
        around = self._inside, self.place
        self._inside, self.place = graph, None
        yield graph
        self._inside, self.place = around
        # A graph names its values by itself, and those around it may be called the same.
        results = (value for node in graph for value in node.outputs)
        for number, value in enumerate([*graph.inputs, *results]):
            value.name = f"{name}.{number}"

    def replace(self, node: ir.Node, *results: ir.Value) -> None:
        """Puts values in the place of a node's, and removes the node."""
        for old, new in zip(node.outputs, results, strict=True):
            new.name, old_name = old.name, old.name
            old.name = f"{old_name}.replaced"
            new.shape, new.type = old.shape, old.type
            old.replace_all_uses_with(new, replace_graph_outputs=True)
        self.graph.remove(node, safe=True)


class GraphBuilder(Nodes):
    """Writes a graph. Weights of equal names are one, as are those that are the same array."""

    infers_types = True

    def __init__(self, name: str, weights: Mapping[str, NDArray[np.float32]], dtype: ir.DataType) -> None:
        """`dtype` is that of weights in the graph, and of what is computed with them."""
        super().__init__(ir.Graph([], [], nodes=[], opset_imports={"": OPSET}, name=name))
        self.dtype = dtype
        self._weights = weights
        self._names: dict[int, str] = {}
        for own_name, array in weights.items():
            self._names.setdefault(id(array), own_name)

    def choice(self, name: str) -> ir.Value:
        """An input that says yes or no, and yes where it is left out."""
        value = self.input(name, [], ir.DataType.BOOL)
        value.const_value = ir.tensor(np.array(True), name=name)
        self.graph.register_initializer(value)
        return value

    def where_chosen(self, choice: ir.Value, compute: Callable[[], ir.Value], shape: Shape) -> ir.Value:
        """The result of nodes that `compute` adds, which run where the choice is yes; else one of no size."""
        with self.within(f"{choice.name}.yes") as yes:
            yes.outputs.append(result := compute())
        with self.within(f"{choice.name}.no") as no:
            size = self.constant([0] * len(shape))
            no.outputs.append(self.op("ConstantOfShape", [size], dtype=result.dtype))
        return self.op("If", [choice], shape, result.dtype, then_branch=yes, else_branch=no)

    def has(self, name: str) -> bool:
        """Whether the model has such a weight."""
        return name in self._weights

    def places(self, name: str) -> list[int]:
        """Where a vector of the model's is not 0."""
        return list(map(int, np.flatnonzero(self._weights[name])))

    def rows(self, name: str) -> int:
        """How many rows a weight has; of a vector its size."""
        return len(self._weights[name])

    def weight(self, name: str) -> ir.Value:
        """A weight as it is."""
        return self._initializer(self._names[id(self._weights[name])], self._weights[name])

    def matrix(self, name: str) -> ir.Value:
        """A weight [N, K] as rows are multiplied by it: [K, N]."""
        return self._initializer(name, self._weights[name].T)

    def constant(self, numbers: Numbers, dtype: ir.DataType = ir.DataType.INT64) -> ir.Value:
        """A number or a vector."""
        array = np.array(numbers, dtype.numpy())
        name = f"{array.dtype}_{'_'.join(map(str, array.flatten()))}{'' if array.ndim else '_scalar'}"
        return self._register(name, array)

    def number(self, value: float) -> ir.Value:
        """A number of the type that is computed with."""
        return self.constant(value, self.dtype)

    def cast(self, value: ir.Value, dtype: ir.DataType) -> ir.Value:
        """The value in another type; as it is where that is its own."""
        return value if value.dtype == dtype else self.op("Cast", [value], value.shape, dtype, to=dtype)

    def size(self, value: ir.Value, axis: int) -> ir.Value:
        """A value's size along an axis, as a vector of one number."""
        return self.op("Shape", [value], [1], ir.DataType.INT64, start=axis, end=axis + 1)

    def scalar(self, vector: ir.Value) -> ir.Value:
        """A vector of one number as that number."""
        return self.op("Squeeze", [vector], [])

    def reshape(self, value: ir.Value, sizes: Sequence[int] | ir.Value, shape: AnyShape = None) -> ir.Value:
        """Reshapes a value; a size of 0 stands for the value's own, and -1 for what is left."""
        target = sizes if isinstance(sizes, ir.Value) else self.constant(sizes)
        return self.op("Reshape", [value, target], shape)

    def slice(self, value: ir.Value, start: int, end: int, axis: int, shape: AnyShape = None) -> ir.Value:
        """The part of a value from `start` up to `end` along an axis."""
        return self.op("Slice", [value, *[self.constant([number]) for number in (start, end, axis)]], shape)

    def linear(self, rows: ir.Value, name: str) -> ir.Value:
        """A linear layer: [..., K] -> [..., N]."""
        shape = [*_leading(rows), self.rows(f"{name}.weight")]
        return self.affine(rows, self.matrix(f"{name}.weight"), self.weight(f"{name}.bias"), shape)

    def affine(self, rows: ir.Value, matrix: ir.Value, bias: ir.Value, shape: Shape) -> ir.Value:
        """A product of rows and a matrix plus a bias, which is one node where the rows have no more axes."""
        if len(shape) == 2:
            return self.op("Gemm", [rows, matrix, bias], shape)
        return self.op("Add", [self.op("MatMul", [rows, matrix], shape), bias], shape)

    def norm(self, x: ir.Value, name: str, epsilon: float) -> ir.Value:
        """Layer normalisation over the last axis; one without a bias adds none."""
        names = [f"{name}.weight", *([f"{name}.bias"] if self.has(f"{name}.bias") else [])]
        weights = [self.weight(each) for each in names]
        return self.op("LayerNormalization", [x, *weights], x.shape, axis=-1, epsilon=epsilon, stash_type=1)

    def _initializer(self, name: str, array: NDArray[np.float32]) -> ir.Value:
        return self._register(name, array.astype(self.dtype.numpy(), copy=False))

    def _register(self, name: str, array: NDArray[np.generic]) -> ir.Value:
        if name not in self.graph.initializers:
            self.graph.register_initializer(make_view(name, array))
        return self.graph.initializers[name]


def _leading(value: ir.Value) -> list[Size | None]:
    assert value.shape is not None
    return [size if isinstance(size, int) else str(size) for size in value.shape[:-1]]
