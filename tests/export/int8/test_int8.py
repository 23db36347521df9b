"""Int8 graphs: small, near, and safe where there is nothing to scale."""

from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from onnx_ir.tape import Tape
from tests.export.toy_checkpoint import CONFIGS, make_checkpoint, open_stepper, random_sources

from dragoman_export.exporter import make_graphs
from dragoman_export.graph_files import write_graphs
from dragoman_export.graphs.initializers import make_constant
from dragoman_export.graphs.trace import Graphs
from dragoman_export.int8 import quantize
from dragoman_export.int8.graph import Int8Graph
from dragoman_export.int8.weights import quantize_weight
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.decoding.members import as_one
from dragoman_training.models import LuongConfig, Transformer


def test_weight_is_off_by_half_a_step_at_most() -> None:
    weight = np.random.default_rng(1).normal(size=(50, 30)).astype(np.float32)
    weight[:, 3] = 0
    for output_axis in (0, 1):
        quantized = quantize_weight(weight, output_axis=output_axis)
        scale = quantized.scale_N[:, None] if output_axis == 0 else quantized.scale_N
        assert np.abs(quantized.codes).max() == 63
        assert (np.abs(quantized.codes * scale - weight) <= 0.5001 * scale).all()


def product(weight_KN: np.ndarray, rows_RK: np.ndarray) -> np.ndarray:
    """The row-wise int8 product of a graph that holds nothing else."""
    source = ir.Value(
        name="x", shape=ir.Shape(["R", rows_RK.shape[1]]), type=ir.TensorType(ir.DataType.FLOAT)
    )
    graph = ir.Graph([source], [], nodes=[], opset_imports={"": 20}, name="product")
    int8, tape = Int8Graph(graph), Tape()
    weight = int8.weight("w", weight_KN, output_axis=1)
    result = int8.product(tape, int8.rows(tape, source, weight.num_outputs), weight)
    result.name, result.dtype, result.shape = "y", ir.DataType.FLOAT, ir.Shape(["R", weight_KN.shape[1]])
    graph.extend(tape.nodes)
    graph.outputs.append(result)
    content = ir.to_proto(ir.Model(graph, ir_version=10)).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": rows_RK})[0])


def test_product_is_near_the_float_one() -> None:
    generator = np.random.default_rng(2)
    weight, rows = generator.normal(size=(512, 64)), generator.normal(size=(20, 512))
    # Rows of very different size are each rounded by their own scale.
    rows *= 10.0 ** generator.integers(-6, 6, size=(20, 1))
    expected = rows @ weight
    found = product(weight.astype(np.float32), rows.astype(np.float32))
    error = np.abs(found - expected).max(axis=1) / np.abs(expected).max(axis=1)
    assert error.max() < 0.03


def test_sum_of_the_largest_products_does_not_saturate() -> None:
    weight, rows = np.ones((512, 64), np.float32), np.ones((3, 512), np.float32)
    np.testing.assert_allclose(product(weight, rows), 512, rtol=1e-5)


def test_row_of_zeros_gives_zeros() -> None:
    weight = np.random.default_rng(3).normal(size=(8, 4)).astype(np.float32)
    rows = np.zeros((2, 8), np.float32)
    rows[1, 0] = 1e-38
    found = product(weight, rows)
    assert (found[0] == 0).all()
    assert np.isfinite(found).all()


def joined_product(weight_KN: np.ndarray, *, is_flattened: bool) -> ir.Model:
    """[S, Q, 100] and [S, Q, K - 100] concatenated, flattened to rows or not, times the weight."""
    sizes = (100, weight_KN.shape[0] - 100)
    parts = [
        ir.Value(name=name, shape=ir.Shape(["S", "Q", size]), type=ir.TensorType(ir.DataType.FLOAT))
        for name, size in zip(("large", "small"), sizes, strict=True)
    ]
    graph = ir.Graph(parts, [], nodes=[], opset_imports={"": 20}, name="joined")
    int8, tape = Int8Graph(graph), Tape()
    rows = tape.op("Concat", parts, {"axis": -1})
    rows.shape = ir.Shape(["S", "Q", sum(sizes)])
    if is_flattened:
        rows = tape.op("Reshape", [rows, int8.constant("rows", np.array([-1, sum(sizes)]))])
        rows.shape = ir.Shape(["R", sum(sizes)])
    result = tape.op("MatMul", [rows, int8.constant("w", weight_KN)])
    result.name, result.dtype = "y", ir.DataType.FLOAT
    result.shape = ir.Shape([*list(rows.shape)[:-1], weight_KN.shape[1]])
    graph.extend(tape.nodes)
    graph.outputs.append(result)
    return ir.Model(graph, ir_version=10)


@pytest.mark.parametrize("is_flattened", [True, False])
def test_small_values_are_not_rounded_by_the_step_of_large_ones_beside_them(is_flattened: bool) -> None:
    generator = np.random.default_rng(4)
    weight = generator.normal(size=(300, 64)).astype(np.float32)
    weight[:100] /= 1_000
    large, small = (
        generator.normal(size=(3, 7, size)).astype(np.float32) * scale
        for size, scale in ((100, 1), (200, 1e-3))
    )
    model = quantize(joined_product(weight, is_flattened=is_flattened))
    assert "w" not in model.graph.initializers
    session = onnxruntime.InferenceSession(
        ir.to_proto(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (found,) = session.run(None, {"large": large, "small": small})
    expected = np.concatenate([large, small], axis=-1) @ weight
    assert found.shape == ((21, 64) if is_flattened else (3, 7, 64))
    # Rounded together, each small value is off by as much as it is large.
    error = np.abs(found.reshape(21, 64) - expected.reshape(21, 64)).max(axis=1) / np.abs(expected).max()
    assert error.max() < 0.03


@pytest.mark.parametrize(("outputs", "shares"), [(40, True), (24, False)])
def test_what_a_tanh_made_needs_no_pass_over_a_wide_product(outputs: int, shares: bool) -> None:
    generator = np.random.default_rng(5)
    weight = generator.normal(size=(16, outputs)).astype(np.float32)
    bias = generator.normal(size=outputs).astype(np.float32)
    source = ir.Value(name="x", shape=ir.Shape(["R", 16]), type=ir.TensorType(ir.DataType.FLOAT))
    graph = ir.Graph([source], [], nodes=[], opset_imports={"": 20}, name="output_layer")
    int8, tape = Int8Graph(graph), Tape()
    features = tape.op("Tanh", [source])
    features.shape = source.shape
    product = tape.op("MatMul", [features, int8.constant("w", weight)])
    product.shape = ir.Shape(["R", outputs])
    result = tape.op("Add", [product, int8.constant("b", bias)])
    result.name, result.dtype, result.shape = "y", ir.DataType.FLOAT, product.shape
    graph.extend(tape.nodes)
    graph.outputs.append(result)
    model = quantize(ir.Model(graph, ir_version=10))
    operators = [node.op_type for node in model.graph]
    assert (operators == ["Tanh", "QuantizeLinear", "MatMulIntegerToFloat"]) is shares
    assert ("ReduceMax" in operators) is not shares
    session = onnxruntime.InferenceSession(
        ir.to_proto(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    rows = generator.normal(size=(20, 16)).astype(np.float32) * 3
    expected = np.tanh(rows) @ weight + bias
    (found,) = session.run(None, {"x": rows})
    assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()


def test_an_embedding_is_multiplied_as_it_is_stored() -> None:
    generator = np.random.default_rng(6)
    table, weight = (generator.normal(size=size).astype(np.float32) for size in ((30, 16), (16, 8)))
    ids = ir.Value(name="ids", shape=ir.Shape(["R"]), type=ir.TensorType(ir.DataType.INT64))
    graph = ir.Graph([ids], [], nodes=[], opset_imports={"": 20}, name="embedding")
    int8, tape = Int8Graph(graph), Tape()
    rows = tape.op("Gather", [int8.constant("table", table), ids])
    rows.shape = ir.Shape(["R", 16])
    result = tape.op("MatMul", [rows, int8.constant("w", weight)])
    result.name, result.dtype, result.shape = "y", ir.DataType.FLOAT, ir.Shape(["R", 8])
    graph.extend(tape.nodes)
    graph.outputs.append(result)
    model = quantize(ir.Model(graph, ir_version=10))
    assert "ReduceMax" not in [node.op_type for node in model.graph]
    session = onnxruntime.InferenceSession(
        ir.to_proto(model).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    stored = [quantize_weight(array, output_axis=axis) for array, axis in ((table, 0), (weight, 1))]
    expected = (stored[0].codes * stored[0].scale_N[:, None]) @ (stored[1].codes * stored[1].scale_N)
    (found,) = session.run(None, {"ids": np.arange(30)})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def float_value(name: str, *shape: str | int) -> ir.Value:
    return ir.Value(name=name, shape=ir.Shape(shape), type=ir.TensorType(ir.DataType.FLOAT))


class Drawing:
    """A graph that is being written, and held against what int8 makes of it."""

    def __init__(self, *inputs: ir.Value) -> None:
        self.inputs = list(inputs)
        self.tape = Tape()
        self.constants: list[ir.Value] = []

    def constant(self, name: str, array: np.ndarray) -> ir.Value:
        self.constants.append(make_constant(name, array))
        return self.constants[-1]

    def op(
        self,
        operator: str,
        inputs: list[ir.Value],
        shape: list[str | int],
        attributes: dict[str, int | list[int]] | None = None,
    ) -> ir.Value:
        value = self.tape.op(operator, inputs, attributes)
        value.shape, value.dtype = ir.Shape(shape), ir.DataType.FLOAT
        return value

    def error(self, inputs: dict[str, np.ndarray], outputs: list[ir.Value], bounded: list[str]) -> float:
        """The largest of int8 by the largest of its output."""
        for place, value in enumerate(outputs):
            value.name = f"y{place}"
        graph = ir.Graph(
            self.inputs,
            outputs,
            nodes=self.tape.nodes,
            initializers=self.constants,
            opset_imports={"": 20},
            name="drawing",
        )
        model = ir.Model(graph, ir_version=10)
        expected, found = (
            onnxruntime.InferenceSession(
                ir.to_proto(each).SerializeToString(), providers=["CPUExecutionProvider"]
            ).run(None, inputs)
            for each in (model, quantize(model, bounded))
        )
        return max(
            float(np.abs(one - other).max() / np.abs(one).max())
            for one, other in zip(expected, found, strict=True)
        )


@pytest.mark.parametrize("perm", [[1, 0], [0, 1]])
def test_a_matrix_that_is_used_both_ways_has_the_scales_of_each(perm: list[int]) -> None:
    generator = np.random.default_rng(7)
    weight = generator.normal(size=(16, 16)) * np.exp(generator.normal(size=(16, 1)))
    drawing = Drawing(float_value("x", "R", 16))
    matrix = drawing.constant("w", weight.astype(np.float32))
    first = drawing.op("MatMul", [drawing.inputs[0], matrix], ["R", 16])
    turned = drawing.op("Transpose", [matrix], [16, 16], {"perm": perm})
    second = drawing.op("MatMul", [first, turned], ["R", 16])
    rows = generator.normal(size=(5, 16)).astype(np.float32)
    assert drawing.error({"x": rows}, [second], []) < 0.05


def test_a_matrix_is_split_where_each_of_its_rows_was_concatenated() -> None:
    generator = np.random.default_rng(8)
    drawing = Drawing(*(float_value(name, "R", size) for name, size in (("a", 40), ("b", 60))))
    matrix = drawing.constant("w", generator.normal(size=(100, 16)).astype(np.float32))
    a, b = drawing.inputs
    products = [
        drawing.op("MatMul", [drawing.op("Concat", parts, ["R", 100], {"axis": -1}), matrix], ["R", 16])
        for parts in ([a, b], [b, a])
    ]
    rows = {
        name: generator.normal(size=(5, size)).astype(np.float32) for name, size in (("a", 40), ("b", 60))
    }
    assert drawing.error(rows, products, []) < 0.05


def test_layers_that_share_a_matrix_keep_the_other_apart() -> None:
    generator = np.random.default_rng(9)
    drawing = Drawing(float_value("x", "T", "S", 6))
    length = ir.Value(name="length", shape=ir.Shape(["S"]), type=ir.TensorType(ir.DataType.INT32))
    drawing.inputs.append(length)

    def weight(name: str, *shape: int) -> ir.Value:
        return drawing.constant(name, generator.normal(size=shape).astype(np.float32))

    shared, biases = weight("w", 1, 32, 6), weight("b", 1, 64)
    states = []
    for name in ("r1", "r2"):
        inputs = [drawing.inputs[0], shared, weight(name, 1, 32, 8), biases, length]
        state, last = drawing.tape.op_multi_out("LSTM", inputs, {"hidden_size": 8}, num_outputs=2)
        state.shape, state.dtype = ir.Shape(["T", 1, "S", 8]), ir.DataType.FLOAT
        last.shape, last.dtype = ir.Shape([1, "S", 8]), ir.DataType.FLOAT
        states.append(state)
    rows = generator.normal(size=(4, 3, 6)).astype(np.float32)
    assert drawing.error({"x": rows, "length": np.array([4, 2, 3], np.int32)}, states, []) < 0.1


def test_a_gru_that_resets_before_its_product_is_refused() -> None:
    drawing = Drawing(float_value("x", "T", "S", 6))
    weights = [
        drawing.constant(name, np.ones(shape, np.float32))
        for name, shape in (("w", (1, 24, 6)), ("r", (1, 24, 8)), ("b", (1, 48)))
    ]
    length = drawing.constant("length", np.ones(1, np.int32))
    inputs = [drawing.inputs[0], *weights, length]
    state = drawing.op("GRU", inputs, ["T", 1, "S", 8], {"hidden_size": 8})
    with pytest.raises(AssertionError):
        drawing.error({"x": np.ones((1, 1, 6), np.float32)}, [state], [])


def test_rows_that_a_sum_repeats_are_multiplied_apart() -> None:
    generator = np.random.default_rng(10)
    drawing = Drawing(float_value("x", "R", 8), float_value("z", 1, 8))
    products = [
        drawing.op(
            "MatMul",
            [value, drawing.constant(f"w{value.name}", generator.normal(size=(8, 64)).astype(np.float32))],
            [*list(value.shape or ())[:1], 64],
        )
        for value in drawing.inputs
    ]
    total = drawing.op("Add", products, ["R", 64])
    rows = {"x": np.tanh(generator.normal(size=(5, 8))), "z": np.tanh(generator.normal(size=(1, 8)))}
    inputs = {name: array.astype(np.float32) for name, array in rows.items()}
    assert drawing.error(inputs, [total], ["x", "z"]) < 0.05


def test_a_name_stands_for_one_content() -> None:
    int8 = Int8Graph(ir.Graph([], [], nodes=[], opset_imports={"": 20}))
    value = int8.constant("c", np.array([1, 2]))
    assert int8.constant("c", np.array([1, 2])) is value
    for other in (np.array([1, 3]), np.array([1, 2], np.int32), np.array([[1, 2]])):
        with pytest.raises(AssertionError):
            int8.constant("c", other)


def test_every_matrix_is_stored_as_int8_and_once(tmp_path: Path, tokenizer: Tokenizer) -> None:
    config = LuongConfig(embedding_size=64, encoder_units=64, decoder_units=128)
    checkpoint = make_checkpoint(config, tokenizer, tokenizer)
    graphs = make_graphs(checkpoint.model, ["int8"])["int8"]
    for model in (graphs.encoder, graphs.decoder_step):
        for value in model.graph.initializers.values():
            assert value.shape is not None
            assert value.dtype == ir.DataType.INT8 or len(value.shape) < 2, value.name
    write_graphs(graphs, tmp_path / "int8")
    parameters = sum(parameter.numel() for parameter in checkpoint.model.parameters())
    scalars = sum(parameter.numel() for parameter in checkpoint.model.parameters() if parameter.ndim == 1)
    columns = scalars  # a scale for each output, of which most have a bias
    # Beside a byte a parameter, four for biases and scales.
    assert (tmp_path / "int8" / "weights.bin").stat().st_size < parameters + 4 * (scalars + 2 * columns)


@pytest.mark.parametrize("in_ensemble", [False, True])
def test_what_predicts_a_window_and_makes_the_attentional_state_stays_float(
    tokenizer: Tokenizer, in_ensemble: bool
) -> None:
    families = ["luong", "luong-local-p"] if in_ensemble else ["luong-local-p"]
    members = [make_checkpoint(CONFIGS[family], tokenizer, tokenizer) for family in families]
    graphs = make_graphs(as_one(members), ["fp32", "int8"])
    weights = {
        precision: {
            name: value.const_value.numpy()
            for name, value in graphs[precision].decoder_step.graph.initializers.items()
            if value.const_value is not None and value.dtype == ir.DataType.FLOAT
        }
        for precision in ("fp32", "int8")
    }
    # A concat score's single column and each row's scale are float everywhere.
    matrices = {name for name, array in weights["int8"].items() if array.ndim == 2 and array.shape[1] > 1}
    model = "model.members.1" if in_ensemble else "model"
    assert matrices == {
        f"{model}.{name}" for name in ("window.hidden.weight", "window.direction_2H", "combine.weight")
    }
    for name in matrices:
        np.testing.assert_array_equal(weights["int8"][name], weights["fp32"][name])


def test_positions_stay_float(checkpoint: Checkpoint, graphs: dict[str, Graphs]) -> None:
    transformers = {
        name: each for name, each in checkpoint.model.named_modules() if isinstance(each, Transformer)
    }
    for model, is_target in ((graphs["int8"].encoder, False), (graphs["int8"].decoder_step, True)):
        names = [name for name in model.graph.initializers if "positions" in name]
        expected = [
            f"model.{name}.{'target_' * (is_target and each.target_positions is not None)}positions.table_LD"
            for name, each in transformers.items()
        ]
        assert names == [name.replace("..", ".") for name in expected]


def test_int8_search_starts_from_a_state_of_zeros(checkpoint: Checkpoint, graphs_folder: Path) -> None:
    stepper = open_stepper(graphs_folder / "int8", checkpoint)
    sources = random_sources([1, 4], checkpoint.target_tokenizer.vocabulary_size, eos_id=3)
    context = stepper.encode(sources)
    for state in context.state.values():
        state[:] = 0
    ids = np.full((2, 1), 2)
    outputs, _ = stepper.run_step(
        context, ids, np.array([[0], [1]]), np.zeros((2, 1), np.float32), forced_SK=ids
    )
    assert np.isfinite(outputs["top_score"]).all()
