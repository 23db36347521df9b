"""The matrix products of a graph and how large they are, found by running it.

What is made of constants alone is made when the graph is loaded, and is no work of a step. Shapes that
depend on the inputs' are not in the file: each product's operands and result are made outputs of the graph,
and a run at real sizes tells.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnxruntime

from benchmarks.limit.inputs import Array

if TYPE_CHECKING:
    from onnx import AttributeProto, NodeProto

FLOAT_PRODUCTS = frozenset({"MatMul", "Gemm", "FusedMatMul"})
INTEGER_PRODUCTS = frozenset(
    {"MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "QLinearMatMul"}
)


@dataclass(frozen=True, kw_only=True)
class Product:
    """A matrix product, or several of one size."""

    name: str
    is_integer: bool
    """Of 8-bit integers rather than floating-point numbers."""
    batch: int
    """How many products of this size."""
    rows: int
    inner: int
    """How many numbers are multiplied and added for each of the result's."""
    columns: int
    is_weight: bool
    """Whether the right side is the same for all rows and steps."""

    @property
    def multiply_adds(self) -> int:
        """Multiplications, each with an addition."""
        return self.batch * self.rows * self.inner * self.columns


def find_products(path: Path, inputs: Mapping[str, Array]) -> list[Product]:
    """The products of the graph in the file when it is run with these inputs."""
    model = load_folded(path)
    if nested := [node.op_type for node in model.graph.node if any(_subgraphs(node))]:
        raise ValueError(f"{path} has a {nested[0]}, whose products would not be counted")
    nodes = [node for node in model.graph.node if node.op_type in FLOAT_PRODUCTS | INTEGER_PRODUCTS]
    constants = frozenset(value.name for value in model.graph.initializer)
    wanted = {name for node in nodes for name in (node.input[0], node.input[1], node.output[0])}
    shapes = shapes_of(model, wanted, inputs)
    return [_product(node, shapes, constants) for node in nodes]


def load_folded(path: Path) -> onnx.ModelProto:
    """The graph in the file as it is run, what is made of constants alone being constants."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    # It warns that the graph may not suit another machine.
    options.log_severity_level = 3
    with TemporaryDirectory() as folder:
        options.optimized_model_filepath = f"{folder}/step.onnx"
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_file_name", "weights.bin"
        )
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


def shapes_of(
    model: onnx.ModelProto, names: set[str], inputs: Mapping[str, Array]
) -> dict[str, tuple[int, ...]]:
    """The shapes of these values of the graph."""
    shapes = {value.name: tuple(value.dims) for value in model.graph.initializer if value.name in names}
    shapes |= {name: array.shape for name, array in inputs.items() if name in names}
    known = {output.name for output in model.graph.output}
    asked = sorted(names - shapes.keys())
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in asked if name not in known)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    for name, array in zip(asked, session.run(asked, dict(inputs)) if asked else (), strict=True):
        shapes[name] = np.shape(array)
    return shapes


def _product(node: "NodeProto", shapes: Mapping[str, tuple[int, ...]], constants: frozenset[str]) -> Product:
    left, result = shapes[node.input[0]], shapes[node.output[0]]
    transposed = any(attribute.name == "transA" and attribute.i for attribute in node.attribute)
    inner = left[-2] if transposed else left[-1]
    is_weight = node.input[1] in constants
    rows = math.prod(result[:-1]) if is_weight else result[-2]
    return Product(
        name=node.name,
        is_integer=node.op_type in INTEGER_PRODUCTS,
        batch=1 if is_weight else math.prod(result[:-2]),
        rows=rows,
        inner=inner,
        columns=result[-1],
        is_weight=is_weight,
    )


def _subgraphs(node: "NodeProto") -> Iterator["AttributeProto"]:
    return (each for each in node.attribute if each.type == onnx.AttributeProto.GRAPH)
