"""A small attention model as real ONNX graphs under the decoder-step contract, made by hand at random.

It has one state of fixed size and one that grows with every step, memory with and without a time axis.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from dragoman_bundle.bundle import Bundle
from dragoman_bundle.manifest import TensorContract, TensorSpec
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from onnx import TensorProto, helper, numpy_helper
from tests.server.copying_bundle import MANIFEST

PAD, UNK, BOS, EOS = 0, 1, 2, 3
VOCABULARY, WIDTH = 40, 16


class Graph:
    """Collects nodes; `add` returns the name of the node's output."""

    def __init__(self, dtype: type[np.floating]) -> None:
        self._random = np.random.default_rng(5)
        self._dtype = dtype
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: object) -> str:
        output = output or f"value_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def constant(self, value: object, dtype: object = np.int64) -> str:
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape: int, scale: float = 1.0) -> str:
        return self.constant(self._random.normal(size=shape) * scale, self._dtype)

    def save(self, path: Path, inputs: dict[str, str], outputs: dict[str, str]) -> None:
        """Inputs and outputs as name -> "type dim dim ..."."""

        def infos(specs: dict[str, str]) -> list[onnx.ValueInfoProto]:
            parsed = {name: spec.split() for name, spec in specs.items()}
            return [
                helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape)
                for name, (kind, *shape) in parsed.items()
            ]

        graph = helper.make_graph(self._nodes, "tiny", infos(inputs), infos(outputs), self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
        onnx.checker.check_model(model, full_check=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(model.SerializeToString())


def save_encoder(path: Path, dtype: type[np.floating]) -> None:
    kind = "FLOAT" if dtype is np.float32 else "FLOAT16"
    graph, real = Graph(dtype), getattr(TensorProto, kind)
    embedded = graph.add("Gather", graph.weight(VOCABULARY, WIDTH), "source")
    length = graph.add("Unsqueeze", "source_length", graph.constant([1]))
    positions = graph.add("Shape", "source", start=1, end=2)
    steps = graph.add(
        "Range", graph.constant(0), graph.add("Squeeze", positions, graph.constant([0])), graph.constant(1)
    )
    mask = graph.add("Less", steps, length, output="memory.mask")
    weights = graph.add("Unsqueeze", graph.add("Cast", mask, to=real), graph.constant([2]))
    values = graph.add("Mul", graph.add("Tanh", embedded), weights, output="memory.values")
    graph.add("MatMul", values, graph.weight(WIDTH, WIDTH, scale=0.3), output="memory.keys")
    total = graph.add("ReduceSum", values, graph.constant([1]), keepdims=0)
    mean = graph.add("Div", total, graph.add("Cast", length, to=real))
    graph.add("MatMul", mean, graph.weight(WIDTH, VOCABULARY, scale=0.3), output="memory.topic")
    graph.add("Tanh", graph.add("MatMul", mean, graph.weight(WIDTH, WIDTH)), output="state.hidden")
    sentences = graph.add("Shape", "source", start=0, end=1)
    past = graph.add("Concat", sentences, graph.constant([0, WIDTH]), axis=0)
    graph.add("Expand", graph.constant([[[0.0]]], dtype), past, output="state.past")
    graph.save(
        path,
        {"source": "INT64 S T", "source_length": "INT64 S"},
        {
            "memory.mask": "BOOL S T",
            "memory.values": f"{kind} S T {WIDTH}",
            "memory.keys": f"{kind} S T {WIDTH}",
            "memory.topic": f"{kind} S {VOCABULARY}",
            "state.hidden": f"{kind} S {WIDTH}",
            "state.past": f"{kind} S G {WIDTH}",
        },
    )


def save_decoder_step(path: Path, dtype: type[np.floating]) -> None:
    kind = "FLOAT" if dtype is np.float32 else "FLOAT16"
    graph = Graph(dtype)
    flat = graph.constant([-1])
    parent = graph.add("Reshape", "parent", flat)
    token = graph.add("Reshape", "token", flat)
    sizes = graph.add("Shape", "token")
    embedded = graph.add("Gather", graph.weight(VOCABULARY, WIDTH), token)
    # The past: a sum over all the steps before, in which a row's padding counts for nothing.
    past = graph.add("Gather", "state.past", parent)
    summed = graph.add("ReduceSum", past, graph.constant([1]), keepdims=0)
    hidden = graph.add("Gather", "state.hidden", parent)
    inputs = graph.add("Concat", embedded, hidden, summed, axis=1)
    new = graph.add(
        "Tanh",
        graph.add("MatMul", inputs, graph.weight(3 * WIDTH, WIDTH, scale=0.15)),
        output="next_state.hidden",
    )
    graph.add(
        "Concat", past, graph.add("Unsqueeze", new, graph.constant([1])), axis=1, output="next_state.past"
    )
    # Attention, with the beam as rows: (R, D) -> (S, K, D)
    by_sentence = graph.add("Concat", sizes, graph.constant([WIDTH]), axis=0)
    query = graph.add("Reshape", new, by_sentence)
    scores = graph.add("MatMul", query, graph.add("Transpose", "memory.keys", perm=[0, 2, 1]))
    wide = graph.add("Cast", scores, to=TensorProto.FLOAT)
    mask = graph.add("Unsqueeze", "memory.mask", graph.constant([1]))
    masked = graph.add("Where", mask, wide, graph.constant(-1e9, np.float32))
    attention = graph.add("Softmax", masked, axis=2, output="attention")
    context = graph.add("MatMul", graph.add("CastLike", attention, "memory.values"), "memory.values")
    readout = graph.add("Concat", query, context, axis=2)
    logits = graph.add("MatMul", readout, graph.weight(2 * WIDTH, VOCABULARY, scale=0.8))
    topical = graph.add("Add", logits, graph.add("Unsqueeze", "memory.topic", graph.constant([1])))
    bias = np.zeros(VOCABULARY)
    bias[[PAD, UNK, BOS]] = -1e4
    shifted = graph.add("Add", topical, graph.constant(bias, dtype))
    log_probability = graph.add("LogSoftmax", graph.add("Cast", shifted, to=TensorProto.FLOAT), axis=2)
    last = graph.constant([2])
    running = graph.add("Add", log_probability, graph.add("Unsqueeze", "score", last))
    forced = graph.add("GatherElements", running, graph.add("Unsqueeze", "forced", last), axis=2)
    graph.add("Squeeze", forced, last, output="forced_score")
    beam = graph.add("Shape", "token", start=1, end=2)
    candidates = graph.add("Reshape", running, graph.constant([0, -1]))
    graph._nodes.append(
        helper.make_node(
            "TopK", [candidates, graph.add("Mul", beam, graph.constant([2]))], ["top_score", "top_index"]
        )
    )
    graph.save(
        path,
        {
            "token": "INT64 S K",
            "parent": "INT64 S K",
            "score": "FLOAT S K",
            "forced": "INT64 S K",
            "memory.mask": "BOOL S T",
            "memory.values": f"{kind} S T {WIDTH}",
            "memory.keys": f"{kind} S T {WIDTH}",
            "memory.topic": f"{kind} S {VOCABULARY}",
            "state.hidden": f"{kind} P {WIDTH}",
            "state.past": f"{kind} P G {WIDTH}",
        },
        {
            "top_score": "FLOAT S C",
            "top_index": "INT64 S C",
            "forced_score": "FLOAT S K",
            "attention": "FLOAT S K T",
            "next_state.hidden": f"{kind} R {WIDTH}",
            "next_state.past": f"{kind} R H {WIDTH}",
        },
    )


def tiny_bundle(folder: Path, tokenizer: Tokenizer, precisions: tuple[str, ...] = ("fp32",)) -> Bundle:
    """A bundle of the graphs in these precisions; its tokenizer is not the graphs'."""
    for precision in precisions:
        dtype = np.float16 if precision == "fp16" else np.float32
        save_encoder(folder / precision / "encoder.onnx", dtype)
        save_decoder_step(folder / precision / "decoder_step.onnx", dtype)

    def spec(name: str, *shape: int | str, dtype: str = "", growth_axis: int | None = None) -> TensorSpec:
        dtypes = {p: dtype or ("float16" if p == "fp16" else "float32") for p in precisions}
        return TensorSpec(name=name, dtype=dtypes, shape=shape, growth_axis=growth_axis)

    manifest = replace(
        MANIFEST,
        name="tiny",
        source_vocabulary=VOCABULARY,
        target_vocabulary=VOCABULARY,
        contract=TensorContract(
            memory=(
                spec("memory.keys", "S", "T", WIDTH),
                spec("memory.mask", "S", "T", dtype="bool"),
                spec("memory.topic", "S", VOCABULARY),
                spec("memory.values", "S", "T", WIDTH),
            ),
            state=(spec("state.hidden", "P", WIDTH), spec("state.past", "P", "U", WIDTH, growth_axis=1)),
        ),
        precisions=precisions,
        quality=(),
    )
    return Bundle(path=folder, manifest=manifest, source_tokenizer=tokenizer, target_tokenizer=tokenizer)
