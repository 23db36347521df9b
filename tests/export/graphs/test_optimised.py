"""What graphs are like: names, axes, types, operator set, and next to nothing that onnxruntime takes out."""

import logging
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.export.toy_checkpoint import CONFIGS, make_checkpoint, make_graphs

from dragoman_export import trained
from dragoman_export.bundle_files import tensor_contract, write_graphs
from dragoman_export.graphs.builder import OPSET, Graphs
from dragoman_export.graphs.trace import trace
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.models.layers.recurrent import BidirectionalLayer, ForwardLayer


def shapes(values: list[ir.Value]) -> dict[str, tuple[str, list[int | str]]]:
    return {
        str(value.name): (
            value.dtype.name if value.dtype else "",
            [size if isinstance(size, int) else str(size) for size in value.shape or ()],
        )
        for value in values
    }


def test_fp16_keeps_scores_and_attention_in_float32(luong_graphs: dict[str, Graphs]) -> None:
    step = luong_graphs["fp16"].decoder_step.graph
    assert shapes(step.inputs) == {
        "token": ("INT64", ["S", "K"]),
        "parent": ("INT64", ["S", "K"]),
        "score": ("FLOAT", ["S", "K"]),
        "forced": ("INT64", ["S", "K"]),
        "memory.keys": ("FLOAT16", ["S", "T", 14]),
        "memory.mask": ("FLOAT", ["S", "T"]),
        "memory.values": ("FLOAT16", ["S", "T", 20]),
        "state.cell0": ("FLOAT16", ["P", 14]),
        "state.cell1": ("FLOAT16", ["P", 14]),
        "state.feed": ("FLOAT16", ["P", 12]),
        "state.hidden0": ("FLOAT16", ["P", 14]),
        "state.hidden1": ("FLOAT16", ["P", 14]),
    }
    outputs = shapes(step.outputs)
    assert outputs["top_score"] == ("FLOAT", ["S", "2*K"])
    assert outputs["top_index"] == ("INT64", ["S", "2*K"])
    assert outputs["forced_score"] == ("FLOAT", ["S", "K"])
    assert outputs["attention"] == ("FLOAT", ["S", "K", "T"])
    assert outputs["next_state.feed"] == ("FLOAT16", ["K*S", 12])
    (softmax,) = (node for node in step if node.op_type == "LogSoftmax")
    assert softmax.inputs[0] is not None
    assert softmax.inputs[0].dtype == ir.DataType.FLOAT


@pytest.mark.parametrize("checkpoint", ["transformer"], indirect=True)
def test_contract_names_the_axis_that_grows_with_the_steps(graphs: dict[str, Graphs]) -> None:
    state = {spec.name: spec for spec in tensor_contract(graphs).state}
    assert (state["state.keys0"].shape, state["state.keys0"].growth_axis) == (("P", 3, "U", 4), 2)
    assert (state["state.values1"].shape, state["state.values1"].growth_axis) == (("P", 3, "U", 4), 2)
    assert (state["state.age"].shape, state["state.age"].growth_axis) == (("P",), None)
    outputs = shapes(graphs["fp32"].decoder_step.graph.outputs)
    assert outputs["next_state.keys0"] == ("FLOAT", ["K*S", 3, "U + 1", 4])


ALLOWED = {"LSTM": (), "GRU": ("linear_before_reset",), "RNN": ("activations",)}
"""Attributes that CUDA's kernels heed. A GRU has tanh there, whatever it is told."""


def test_encoder_layers_are_nodes_that_cuda_runs(checkpoint: Checkpoint, graphs: dict[str, Graphs]) -> None:
    layers = [node for node in graphs["fp32"].encoder.graph if node.op_type in ALLOWED]
    assert len(layers) == sum(
        isinstance(module, BidirectionalLayer | ForwardLayer) for module in checkpoint.model.modules()
    )
    for layer in layers:
        # Constant weights, lengths given, no initial state, nothing but what CUDA's kernel takes.
        assert all(value is not None and value.is_initializer() for value in layer.inputs[1:4])
        assert len(layer.inputs) == 5
        assert set(layer.attributes) == {"direction", "hidden_size", *ALLOWED[layer.op_type]}


@pytest.mark.parametrize("precision", ["fp32", "int8", "fp16"])
def test_graphs_are_valid_and_clean(luong_graphs: dict[str, Graphs], precision: str) -> None:
    for model in (luong_graphs[precision].encoder, luong_graphs[precision].decoder_step):
        proto = ir.to_proto(model)
        onnx.checker.check_model(proto, full_check=True)
        # Integer products are an operator of onnxruntime's own.
        own = [("com.microsoft", 1)] if precision == "int8" else []
        assert [(each.domain, each.version) for each in proto.opset_import] == [("", OPSET), *own]
        # Paths and stack traces of the machine that exported have no place in a bundle.
        assert b".py" not in proto.SerializeToString()
        assert not any(node.metadata_props or node.doc_string for node in proto.graph.node)


def test_exporting_is_quiet_and_repeats_itself(
    luong: Checkpoint,
    luong_graphs: dict[str, Graphs],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trained, "trace", trace)
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.WARNING):
        again = make_graphs(luong.model, ["int8"])["int8"]
    assert [str(warning.message) for warning in caught] == []
    # A thread of another test may log of its own.
    assert [record for record in caplog.records if not record.name.startswith("opentelemetry")] == []
    assert capfd.readouterr() == ("", "")
    before = luong_graphs["int8"]
    for one, other in ((again.encoder, before.encoder), (again.decoder_step, before.decoder_step)):
        assert ir.to_proto(one).SerializeToString() == ir.to_proto(other).SerializeToString()


ALL = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
STANDARD = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
"""With operators of the standard alone: no fusions of its own."""


def as_loaded(path: Path, level: onnxruntime.GraphOptimizationLevel = ALL) -> onnx.ModelProto:
    """What becomes of the graph at this level of optimisation."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    # Beside the weights, which it refers to.
    options.optimized_model_filepath = str(path.with_name(f"loaded-{path.name}"))
    options.log_severity_level = 3
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return onnx.load(options.optimized_model_filepath)


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Its nodes and those of the loops in it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from all_nodes(attribute.g)


def made_of_constants(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Nodes that are worked out once, when a graph is loaded: what follows from the rest is not stored."""
    known = {tensor.name for tensor in graph.initializer} | {""}
    made = []
    for node in graph.node:
        if set(node.input) <= known:
            made.append(node)
            known.update(node.output)
    return made


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("name", ["encoder", "decoder_step"])
def test_onnxruntime_finds_little_to_take_out(graphs_folder: Path, precision: str, name: str) -> None:
    path = graphs_folder / precision / f"{name}.onnx"
    shipped = onnx.load(path, load_external_data=False).graph
    nodes = Counter(node.op_type for node in all_nodes(shipped))
    nodes -= Counter(node.op_type for node in made_of_constants(shipped))
    taken_out = nodes - Counter(node.op_type for node in all_nodes(as_loaded(path, STANDARD).graph))
    assert taken_out.total() <= 0.03 * nodes.total(), taken_out


PRODUCTS = ("MatMul", "FusedMatMul", "Gemm", "FusedGemm", "MatMulInteger", "MatMulIntegerToFloat")


def depend_on(model: onnx.ModelProto, name: str) -> set[str]:
    """The values that are made of an input of the graph and of constants, and of nothing else."""
    known = {value.name for value in model.graph.initializer}
    found = {name}
    for node in model.graph.node:
        if found & set(node.input) and set(node.input) <= known | found | {""}:
            found.update(node.output)
    return found


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("family", ["luong", "bahdanau-gru"])
def test_nothing_is_multiplied_by_a_token_alone(
    family: str, precision: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    graphs = make_graphs(make_checkpoint(CONFIGS[family], tokenizer, tokenizer).model, [precision])
    write_graphs(graphs[precision], tmp_path / precision)
    step = as_loaded(tmp_path / precision / "decoder_step.onnx")
    of_token = depend_on(step, "token")
    nodes = [node for node in step.graph.node if of_token & set(node.output)]
    assert "Gather" in {node.op_type for node in nodes}
    assert not [node.name for node in nodes if node.op_type in PRODUCTS]
    constants = {value.name for value in step.graph.initializer}
    assert not [node.name for node in step.graph.node if set(node.input) <= constants]
