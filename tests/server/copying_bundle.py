"""A real bundle whose model copies: each target token, a character, is the source token at its place.

Its translations are known beforehand, its attention is on the very token it copies, and everything around
it is the real thing: sentencepiece, ONNX graphs, checksums. With `slowness` a step takes its time.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import sentencepiece
from dragoman_bundle.decoding import DecodingDefaults
from dragoman_bundle.manifest import (
    FORMAT_VERSION,
    Architecture,
    Manifest,
    Quality,
    SpecialIds,
    TensorContract,
    TensorSpec,
)
from dragoman_bundle.writer import seal, staged_bundle
from onnx import TensorProto, helper, numpy_helper
from tests.pieces import BESIDE_PAD, train_pieces

IDS = SpecialIds(pad=0, unk=1, bos=2, eos=3)
OPSET = 20

MANIFEST = Manifest(
    format_version=FORMAT_VERSION,
    name="de-en",
    version="1",
    source_language="de",
    target_language="en",
    architecture=Architecture(family="copying", parameters=0, description="copies"),
    source_vocabulary=16,
    target_vocabulary=16,
    source_ids=IDS,
    target_ids=IDS,
    source_tokenizer="shared.spm",
    target_tokenizer="shared.spm",
    contract=TensorContract(
        memory=(
            TensorSpec(name="memory.source", dtype={"fp32": "int64"}, shape=("S", "T"), growth_axis=None),
            TensorSpec(name="memory.mask", dtype={"fp32": "bool"}, shape=("S", "T"), growth_axis=None),
        ),
        state=(TensorSpec(name="state.position", dtype={"fp32": "int64"}, shape=("P", 1), growth_axis=None),),
    ),
    decoding=DecodingDefaults(
        beam_size=2,
        length_penalty=1.0,
        max_source_tokens=64,
        max_output_tokens=128,
        max_output_ratio=1.5,
        max_output_margin=5,
    ),
    precisions=("fp32",),
    quality=(
        Quality(test_set="none", metric="BLEU", score=1.0, signature="none", precision="fp32", beam_size=2),
    ),
    licence="CC0-1.0",
    credit="Nobody",
    files={},
)


def write_bundle(
    models: Path,
    *,
    manifest: Manifest = MANIFEST,
    max_source_tokens: int | None = None,
    slowness: int = 0,
    tags: tuple[str, ...] = (),
) -> Path:
    """Writes a copying bundle to its place in the folder `models` and returns that.

    `slowness` is the side of a square matrix that every step multiplies by itself, `tags` are pieces of their
    own.
    """
    tokenizer = _train_tokenizer(tags)
    vocabulary = sentencepiece.SentencePieceProcessor(model_proto=tokenizer).vocab_size()
    decoding = manifest.decoding
    if max_source_tokens is not None:
        decoding = replace(decoding, max_source_tokens=max_source_tokens)
    place = models / manifest.name / manifest.version
    with staged_bundle(place) as folder:
        (folder / "shared.spm").write_bytes(tokenizer)
        (folder / "fp32").mkdir()
        onnx.save(_encoder(), folder / "fp32" / "encoder.onnx")
        onnx.save(_decoder_step(vocabulary, slowness), folder / "fp32" / "decoder_step.onnx")
        seal(
            folder,
            replace(manifest, source_vocabulary=vocabulary, target_vocabulary=vocabulary, decoding=decoding),
        )
    return place


def _train_tokenizer(tags: tuple[str, ...]) -> bytes:
    letters = "aäbcdefghijklmnoöpqrsßtuüvwxyzAÄBCDEFGHIJKLMNOÖPQRSTUÜVWXYZéèçñ0123456789.,;:!?-'\"()"
    return train_pieces(
        [f"{letters} {letters}"] * 4,
        len(letters) + 5 + len(tags),
        user_defined_symbols=list(tags),
        character_coverage=1.0,
        **BESIDE_PAD,
    )


def _encoder() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Identity", ["source"], ["memory.source"]),
        helper.make_node("Shape", ["source"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["T"]),
        helper.make_node("Range", ["zero", "T", "one"], ["place"]),
        helper.make_node("Unsqueeze", ["source_length", "axis1"], ["length"]),
        helper.make_node("Less", ["place", "length"], ["memory.mask"]),
        helper.make_node("Sub", ["length", "length"], ["state.position"]),
    ]
    constants = {"zero": np.int64(0), "one": np.int64(1), "axis1": np.array([1], np.int64)}
    inputs = [_info("source", TensorProto.INT64, "S", "T"), _info("source_length", TensorProto.INT64, "S")]
    outputs = [
        _info("memory.source", TensorProto.INT64, "S", "T"),
        _info("memory.mask", TensorProto.BOOL, "S", "T"),
        _info("state.position", TensorProto.INT64, "S", 1),
    ]
    return _model(nodes, inputs, outputs, constants)


def _decoder_step(vocabulary: int, slowness: int) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Reshape", ["parent", "flat"], ["parent_R"]),
        helper.make_node("Gather", ["state.position", "parent_R"], ["position_R1"], axis=0),
        helper.make_node("Add", ["position_R1", "one"], ["next_state.position"]),
        helper.make_node("Shape", ["parent"], ["shape_SK"]),
        helper.make_node("Reshape", ["position_R1", "shape_SK"], ["position_unbounded"]),
        helper.make_node("Shape", ["memory.source"], ["shape_ST"]),
        helper.make_node("Gather", ["shape_ST", "one"], ["T"]),
        helper.make_node("Sub", ["T", "one"], ["last"]),
        helper.make_node("Min", ["position_unbounded", "last"], ["position_SK"]),
        helper.make_node("GatherElements", ["memory.source", "position_SK"], ["copied_SK"], axis=1),
        helper.make_node("Unsqueeze", ["T", "axis0"], ["T_1"]),
        helper.make_node("OneHot", ["position_SK", "T_1", "off_on"], ["attention"], axis=-1),
        helper.make_node("OneHot", ["copied_SK", "vocabulary", "off_likely"], ["wanted_SKV"], axis=-1),
        helper.make_node("Add", ["wanted_SKV", "bias_V"], ["logits_SKV"]),
        helper.make_node("LogSoftmax", ["logits_SKV"], ["log_p_SKV"], axis=-1),
        helper.make_node("Unsqueeze", ["score", "axis2"], ["score_SK1"]),
        helper.make_node("Add", ["log_p_SKV", "score_SK1"], ["total_SKV"]),
        helper.make_node("Reshape", ["total_SKV", "by_sentence"], ["total_SN"]),
        helper.make_node("Gather", ["shape_SK", "one"], ["K"]),
        helper.make_node("Mul", ["K", "two"], ["C"]),
        helper.make_node("Unsqueeze", ["C", "axis0"], ["C_1"]),
        helper.make_node("TopK", ["total_SN", "C_1"], ["top_score", "top_index"], axis=-1),
        helper.make_node("Unsqueeze", ["forced", "axis2"], ["forced_SK1"]),
        helper.make_node("GatherElements", ["total_SKV", "forced_SK1"], ["forced_score_SK1"], axis=2),
        helper.make_node("Squeeze", ["forced_score_SK1", "axis2"], ["forced_score_exact"]),
        # Work that no optimiser can leave out, and that changes nothing.
        helper.make_node("Cast", ["T"], ["T_float"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["square", "T_float"], ["square_T"]),
        helper.make_node("MatMul", ["square_T", "square_T"], ["product"]),
        helper.make_node("ReduceSum", ["product"], ["work"], keepdims=0),
        helper.make_node("Mul", ["work", "nothing"], ["no_work"]),
        helper.make_node("Add", ["forced_score_exact", "no_work"], ["forced_score"]),
    ]
    bias = np.arange(vocabulary, dtype=np.float32) * np.float32(-0.001)
    bias[[IDS.pad, IDS.unk, IDS.bos]] = -1e4
    bias[IDS.eos] = -3
    constants = {
        "flat": np.array([-1], np.int64),
        "one": np.int64(1),
        "two": np.int64(2),
        "axis0": np.array([0], np.int64),
        "axis2": np.array([2], np.int64),
        "by_sentence": np.array([0, -1], np.int64),
        "off_on": np.array([0, 1], np.float32),
        "off_likely": np.array([0, 12], np.float32),
        "vocabulary": np.array([vocabulary], np.int64),
        "bias_V": bias,
        "square": np.ones((max(slowness, 1),) * 2, np.float32),
        "nothing": np.float32(0),
    }
    inputs = [
        _info("token", TensorProto.INT64, "S", "K"),
        _info("parent", TensorProto.INT64, "S", "K"),
        _info("score", TensorProto.FLOAT, "S", "K"),
        _info("forced", TensorProto.INT64, "S", "K"),
        _info("memory.source", TensorProto.INT64, "S", "T"),
        _info("memory.mask", TensorProto.BOOL, "S", "T"),
        _info("state.position", TensorProto.INT64, "P", 1),
    ]
    outputs = [
        _info("top_score", TensorProto.FLOAT, "S", "C"),
        _info("top_index", TensorProto.INT64, "S", "C"),
        _info("forced_score", TensorProto.FLOAT, "S", "K"),
        _info("attention", TensorProto.FLOAT, "S", "K", "T"),
        _info("next_state.position", TensorProto.INT64, "R", 1),
    ]
    return _model(nodes, inputs, outputs, constants)


def _info(name: str, type_: int, *shape: str | int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, type_, shape)


def _model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    constants: dict[str, np.generic | np.ndarray],
) -> onnx.ModelProto:
    initializers = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "copying", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    onnx.checker.check_model(model)
    return model
