"""Sums of products in int8: merged where rows count in the same steps, and still the same sums."""

from collections import Counter

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from onnx_ir.tape import Tape

from dragoman_export.graphs.initializers import make_constant
from dragoman_export.int8 import quantize

WIDTH, OUTPUTS = 32, 160
GENERATOR = np.random.default_rng(1)
WEIGHTS = {
    name: GENERATOR.normal(size=(WIDTH, OUTPUTS)).astype(np.float32) for name in ("free", "feed", "hidden")
}
BIAS = GENERATOR.normal(size=OUTPUTS).astype(np.float32)


class Sum:
    """A cell's sum: of a token's product with a bias, reshaped to rows, and those of two tanhs."""

    def __init__(self) -> None:
        self.tape = Tape()
        shapes = {"free": ["S", "K", WIDTH], "feed": ["R", WIDTH], "hidden": ["R", WIDTH]}
        self.inputs = {
            name: ir.Value(name=name, shape=ir.Shape(shape), type=ir.TensorType(ir.DataType.FLOAT))
            for name, shape in shapes.items()
        }
        self.constants: list[ir.Value] = []
        free = self.op("MatMul", [self.inputs["free"], self.weight("free")], ["S", "K", OUTPUTS])
        free = self.op("Add", [free, self.constant("bias", BIAS)], ["S", "K", OUTPUTS])
        self.free = self.op("Reshape", [free, self.constant("rows", np.array([-1, OUTPUTS]))], ["R", OUTPUTS])
        self.feed, self.hidden = (
            self.op("MatMul", [self.op("Tanh", [self.inputs[name]], ["R", WIDTH]), self.weight(name)])
            for name in ("feed", "hidden")
        )

    def gemm(self, name: str, bias: np.ndarray) -> ir.Value:
        """A tanh's product with a bias of its own."""
        rows = self.op("Tanh", [self.inputs[name]], ["R", WIDTH])
        return self.op("Gemm", [rows, self.weight(name), self.constant(f"{name}.bias", bias)])

    def constant(self, name: str, array: np.ndarray) -> ir.Value:
        self.constants.append(make_constant(name, array))
        return self.constants[-1]

    def weight(self, name: str) -> ir.Value:
        for made in self.constants:
            if made.name == f"{name}.weight":
                return made
        return self.constant(f"{name}.weight", WEIGHTS[name])

    def op(self, operator: str, inputs: list[ir.Value], shape: list[int | str] | None = None) -> ir.Value:
        value = self.tape.op(operator, inputs)
        value.shape, value.dtype = ir.Shape(shape or ["R", OUTPUTS]), ir.DataType.FLOAT
        return value

    def quantized(self, **outputs: ir.Value) -> ir.Model:
        for name, value in outputs.items():
            value.name = name
        graph = ir.Graph(
            list(self.inputs.values()),
            list(outputs.values()),
            nodes=self.tape.nodes,
            initializers=self.constants,
            opset_imports={"": 20},
            name="sum",
        )
        return quantize(ir.Model(graph, ir_version=10))


def run(model: ir.Model) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """What a model gives, and the products without biases that it should have added up."""
    session = onnxruntime.InferenceSession(
        ir.to_proto(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    generator = np.random.default_rng(2)
    sizes = {"free": (3, 4, WIDTH), "feed": (12, WIDTH), "hidden": (12, WIDTH)}
    values = {name: generator.normal(size=size).astype(np.float32) for name, size in sizes.items()}
    rows = {"free": values["free"].reshape(12, WIDTH)} | {
        name: np.tanh(values[name]) for name in ("feed", "hidden")
    }
    given = {each.name: values[each.name] for each in session.get_inputs()}
    return session.run(None, given), {name: rows[name] @ WEIGHTS[name] for name in rows}


def assert_near(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 0.03 * np.abs(expected).max()


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
def test_products_of_bounded_rows_become_one(order: tuple[int, ...]) -> None:
    cell = Sum()
    terms = [cell.free, cell.feed, cell.hidden]
    first, second, third = (terms[place] for place in order)
    model = cell.quantized(y=cell.op("Add", [cell.op("Add", [first, second]), third]))
    operators = Counter(node.op_type for node in model.graph)
    assert operators["MatMulIntegerToFloat"] == 2
    assert operators["QuantizeLinear"] == 1
    # Added within the product of bounded rows, not in a pass over that of the free ones.
    values = [value for node in model.graph for value in node.inputs if value is not None]
    assert not any(value.name == "bias" for value in values)
    (found,), products = run(model)
    assert_near(found, sum(products.values()) + BIAS)


def test_one_product_of_bounded_rows_stays_as_it_is() -> None:
    cell = Sum()
    model = cell.quantized(y=cell.op("Add", [cell.free, cell.feed]))
    assert Counter(node.op_type for node in model.graph)["MatMulIntegerToFloat"] == 2
    assert {"free.weight.columns.codes", "feed.weight.columns.codes"} <= model.graph.initializers.keys()
    (found,), products = run(model)
    assert_near(found, products["free"] + products["feed"] + BIAS)


def test_a_sum_that_is_used_elsewhere_too_stays() -> None:
    cell = Sum()
    part = cell.op("Add", [cell.feed, cell.free])
    model = cell.quantized(part=part, y=cell.op("Add", [part, cell.hidden]))
    (part_found, found), products = run(model)
    assert_near(part_found, products["feed"] + products["free"] + BIAS)
    assert_near(found, sum(products.values()) + BIAS)


@pytest.mark.parametrize("shape", [(OUTPUTS,), (1, OUTPUTS)])
def test_a_products_own_bias_is_added(shape: tuple[int, ...]) -> None:
    cell = Sum()
    bias = np.arange(OUTPUTS, dtype=np.float32)
    model = cell.quantized(y=cell.op("Add", [cell.gemm("feed", bias.reshape(shape)), cell.hidden]))
    (found,), products = run(model)
    assert_near(found, products["feed"] + products["hidden"] + bias)


def test_two_sums_of_the_same_matrices_have_each_its_own_constants() -> None:
    cell = Sum()
    both = []
    for factor in (1, 5):
        tanhs = [cell.op("Tanh", [cell.inputs[name]], ["R", WIDTH]) for name in ("feed", "hidden")]
        weights = [cell.weight(name) for name in ("feed", "hidden")]
        parts = [cell.op("MatMul", list(pair)) for pair in zip(tanhs, weights, strict=True)]
        constant = cell.constant(f"b{factor}", factor * BIAS)
        both.append(cell.op("Add", [cell.op("Add", parts), constant]))
    model = cell.quantized(one=both[0], other=both[1])
    (one, other), products = run(model)
    assert_near(one, products["feed"] + products["hidden"] + BIAS)
    assert_near(other, products["feed"] + products["hidden"] + 5 * BIAS)


def test_a_product_that_is_used_elsewhere_too_stays_apart() -> None:
    cell = Sum()
    model = cell.quantized(y=cell.op("Add", [cell.feed, cell.hidden]), z=cell.op("Tanh", [cell.feed]))
    assert Counter(node.op_type for node in model.graph)["MatMulIntegerToFloat"] == 2
    (found, _), products = run(model)
    assert_near(found, products["feed"] + products["hidden"])


def test_constants_beside_the_products_are_their_bias() -> None:
    cell = Sum()
    biased = cell.op("Add", [cell.constant("b", 2 * BIAS), cell.feed])
    model = cell.quantized(y=cell.op("Add", [biased, cell.hidden]))
    assert [node.op_type for node in model.graph if node.op_type in ("Add", "MatMulIntegerToFloat")] == [
        "MatMulIntegerToFloat"
    ]
    (found,), products = run(model)
    assert_near(found, products["feed"] + products["hidden"] + 2 * BIAS)
