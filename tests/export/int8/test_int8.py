"""Int8 graphs: small, near, safe where there is nothing to scale; what is bounded, and what shares a step."""

from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.export.toy_checkpoint import (
    CONFIGS,
    first_outputs,
    make_checkpoint,
    make_graphs,
    open_stepper,
    random_sources,
)

from dragoman_export.bundle_files import write_graphs
from dragoman_export.graphs.builder import Graphs
from dragoman_export.graphs.rewrites import find_output_product
from dragoman_export.int8.calibration import shared_step
from dragoman_export.int8.graph import Int8Graph, quantize_weight
from dragoman_export.int8.quantize import bounded_states
from dragoman_training.checkpoint import Checkpoint, as_one
from dragoman_training.models import LuongConfig, Transformer


def test_weight_is_off_by_half_a_step_at_most() -> None:
    weight = np.random.default_rng(1).normal(size=(50, 30)).astype(np.float32)
    weight[3] = 0
    quantized = quantize_weight(weight)
    assert np.abs(quantized.codes_NK).max() == 63
    assert (np.abs(quantized.floats() - weight) <= 0.5001 * quantized.scale_N[:, None]).all()


def product(weight_KN: np.ndarray, rows_RK: np.ndarray) -> np.ndarray:
    """The row-wise int8 product of a graph that holds nothing else."""
    graph = ir.Graph([], [], nodes=[], opset_imports={"": 20}, name="product")
    int8 = Int8Graph(graph, set(), (), {}, {})
    source = int8.input("x", ["R", rows_RK.shape[1]], ir.DataType.FLOAT)
    weight = int8.weight("w", weight_KN, output_axis=1)
    result = int8.product(int8.rows(source, weight.num_outputs), weight)
    result.dtype = ir.DataType.FLOAT
    int8.output("y", result, ["R", weight_KN.shape[1]])
    content = ir.to_proto(int8.model()).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": rows_RK})[0])


def test_product_is_near_the_float_one() -> None:
    generator = np.random.default_rng(2)
    weight, rows = generator.normal(size=(512, 64)), generator.normal(size=(20, 512))
    # Rows of very different size are each rounded by their own scale.
    rows *= 10.0 ** generator.integers(-6, 6, size=(20, 1))
    expected = rows @ weight
    found = product(weight.astype(np.float32), rows.astype(np.float32))
    assert (np.abs(found - expected).max(axis=1) / np.abs(expected).max(axis=1)).max() < 0.03


def test_the_largest_products_do_not_saturate_and_a_row_of_zeros_gives_zeros() -> None:
    weight, rows = np.ones((512, 64), np.float32), np.ones((3, 512), np.float32)
    np.testing.assert_allclose(product(weight, rows), 512, rtol=1e-5)
    weight = np.random.default_rng(3).normal(size=(8, 4)).astype(np.float32)
    rows = np.zeros((2, 8), np.float32)
    rows[1, 0] = 1e-38
    found = product(weight, rows)
    assert (found[0] == 0).all()
    assert np.isfinite(found).all()


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
    kept = ("window.hidden.weight", "window.direction_2H", "combine.weight")
    assert matrices == {f"{model}.{name}" for name in kept}
    for name in matrices:
        np.testing.assert_array_equal(weights["int8"][name], weights["fp32"][name])


def test_positions_stay_float(checkpoint: Checkpoint, graphs: dict[str, Graphs]) -> None:
    modules = checkpoint.model.named_modules()
    transformers = {name: each for name, each in modules if isinstance(each, Transformer)}
    for model, is_target in ((graphs["int8"].encoder, False), (graphs["int8"].decoder_step, True)):
        names = [name for name in model.graph.initializers if "positions" in name]
        expected = [
            f"{name}.{'target_' * (is_target and each.target_positions is not None)}positions.table_LD"
            for name, each in transformers.items()
        ]
        # What is traced, as a member of an ensemble is, has a name of its own before.
        assert [name.removeprefix("model.") for name in names] == [name.lstrip(".") for name in expected]


def test_int8_search_starts_from_a_state_of_zeros(checkpoint: Checkpoint, graphs_folder: Path) -> None:
    stepper = open_stepper(graphs_folder / "int8", checkpoint)
    context = stepper.encode(random_sources([1, 4], checkpoint.target_tokenizer.vocabulary_size, eos_id=3))
    for state in context.state.values():
        state[:] = 0
    assert np.isfinite(first_outputs(stepper, context)["top_score"]).all()


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("luong", {"state.feed", "state.hidden0", "state.hidden1"}),
        # Its cell ends in a sum of two products, which counts as free.
        ("bahdanau-gru", set()),
        ("plain", {"state.hidden0"}),
        ("transformer", set()),
        ("lm", {"state.hidden0", "state.past"}),
    ],
)
def test_hidden_states_of_families(family: str, expected: set[str], tokenizer: Tokenizer) -> None:
    graphs = make_graphs(make_checkpoint(CONFIGS[family], tokenizer, tokenizer).model, ["fp32"])["fp32"]
    assert bounded_states(graphs.encoder.graph, graphs.decoder_step.graph) == expected


@pytest.mark.parametrize("num_members", [1, pytest.param(3, marks=pytest.mark.long)])
def test_what_an_ensemble_scales_down_is_rounded_by_rows(num_members: int, tokenizer: Tokenizer) -> None:
    members = [make_checkpoint(CONFIGS["luong"], tokenizer, tokenizer) for _ in range(num_members)]
    step = make_graphs(as_one(members), ["int8"])["int8"].decoder_step.graph
    assert (find_output_product(step).row_step is not None) is (num_members > 1)


NORMAL = np.random.default_rng(1).normal(size=(40, 64)).astype(np.float32)


@pytest.mark.parametrize(
    "rows",
    [
        NORMAL * np.where(np.arange(40) == 7, 100, 1)[:, None].astype(np.float32),
        NORMAL * 10.0 ** np.linspace(-3, 3, 40)[:, None].astype(np.float32),
        np.zeros((40, 64), np.float32),
    ],
    ids=["one is far larger", "of all sizes", "nothing"],
)
def test_rows_keep_steps_of_their_own_where_a_common_one_would_lose_much(rows: np.ndarray) -> None:
    assert shared_step(rows) is None
