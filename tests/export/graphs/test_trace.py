"""What the graphs are like: names, axes, types, operator set, and what is not in them."""

import logging
import warnings

import onnx
import onnx_ir as ir
import pytest
from tests.export.toy_checkpoint import make_graphs

from dragoman_export import trained
from dragoman_export.graphs.builder import OPSET, Graphs
from dragoman_export.graphs.trace import trace
from dragoman_export.manifest import tensor_contract
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


def test_encoder_layers_are_nodes_that_cuda_can_run(
    checkpoint: Checkpoint, graphs: dict[str, Graphs]
) -> None:
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
    heard = [record for record in caplog.records if not record.name.startswith("opentelemetry")]
    assert heard == []
    assert capfd.readouterr() == ("", "")
    for one, other in (
        (again.encoder, luong_graphs["int8"].encoder),
        (again.decoder_step, luong_graphs["int8"].decoder_step),
    ):
        assert ir.to_proto(one).SerializeToString() == ir.to_proto(other).SerializeToString()
