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
from onnx import numpy_helper, parser
from tests.pieces import BESIDE_PAD, train_pieces

IDS = SpecialIds(pad=0, unk=1, bos=2, eos=3)

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


GRAPHS = {
    "encoder": """<ir_version: 10, opset_import: ["": 20]>
        encoder (int64[S, T] source, int64[S] source_length)
            => (int64[S, T] "memory.source", bool[S, T] "memory.mask", int64[S, 1] "state.position")
        <int64 zero = {0}, int64 one = {1}, int64[1] axis1 = {1}> {
            "memory.source" = Identity(source)
            shape = Shape(source)
            T = Gather(shape, one)
            place = Range(zero, T, one)
            length = Unsqueeze(source_length, axis1)
            "memory.mask" = Less(place, length)
            "state.position" = Sub(length, length)
        }""",
    "decoder_step": """<ir_version: 10, opset_import: ["": 20]>
        decoder_step (
            int64[S, K] token, int64[S, K] parent, float[S, K] score, int64[S, K] forced,
            int64[S, T] "memory.source", bool[S, T] "memory.mask", int64[P, 1] "state.position"
        ) => (
            float[S, C] top_score, int64[S, C] top_index, float[S, K] forced_score,
            float[S, K, T] attention, int64[R, 1] "next_state.position"
        )
        <int64[1] flat = {-1}, int64 one = {1}, int64 two = {2}, int64[1] axis0 = {0}, int64[1] axis2 = {2},
         int64[2] by_sentence = {0, -1}, float[2] off_on = {0, 1}, float[2] off_likely = {0, 12},
         float nothing = {0}> {
            parent_R = Reshape(parent, flat)
            position_R1 = Gather<axis = 0>("state.position", parent_R)
            "next_state.position" = Add(position_R1, one)
            shape_SK = Shape(parent)
            position_unbounded = Reshape(position_R1, shape_SK)
            shape_ST = Shape("memory.source")
            T = Gather(shape_ST, one)
            last = Sub(T, one)
            position_SK = Min(position_unbounded, last)
            copied_SK = GatherElements<axis = 1>("memory.source", position_SK)
            T_1 = Unsqueeze(T, axis0)
            attention = OneHot<axis = -1>(position_SK, T_1, off_on)
            wanted_SKV = OneHot<axis = -1>(copied_SK, vocabulary, off_likely)
            logits_SKV = Add(wanted_SKV, bias_V)
            log_p_SKV = LogSoftmax<axis = -1>(logits_SKV)
            score_SK1 = Unsqueeze(score, axis2)
            total_SKV = Add(log_p_SKV, score_SK1)
            total_SN = Reshape(total_SKV, by_sentence)
            K = Gather(shape_SK, one)
            C = Mul(K, two)
            C_1 = Unsqueeze(C, axis0)
            top_score, top_index = TopK<axis = -1>(total_SN, C_1)
            forced_SK1 = Unsqueeze(forced, axis2)
            forced_score_SK1 = GatherElements<axis = 2>(total_SKV, forced_SK1)
            forced_score_exact = Squeeze(forced_score_SK1, axis2)
            # Work that no optimiser can leave out, and that changes nothing.
            T_float = Cast<to = 1>(T)
            square_T = Mul(square, T_float)
            product = MatMul(square_T, square_T)
            work = ReduceSum<keepdims = 0>(product)
            no_work = Mul(work, nothing)
            forced_score = Add(forced_score_exact, no_work)
        }""",
}
"""A step's other inputs are the size of the vocabulary, its bias, and a square matrix to be multiplied."""


def write_bundle(
    models: Path,
    key: str = "de-en/1",
    languages: str = "de-en",
    *,
    manifest: Manifest = MANIFEST,
    slowness: int = 0,
    tags: tuple[str, ...] = (),
) -> Path:
    """Writes a copying bundle of that name and version to its place in the folder `models` and returns that.

    `slowness` is the side of a square matrix that every step multiplies by itself, `tags` are pieces of their
    own.
    """
    tokenizer = _train_tokenizer(tags)
    size = sentencepiece.SentencePieceProcessor(model_proto=tokenizer).vocab_size()
    bias = np.arange(size, dtype=np.float32) * np.float32(-0.001)
    bias[[IDS.pad, IDS.unk, IDS.bos]] = -1e4
    bias[IDS.eos] = -3
    square = np.ones((max(slowness, 1),) * 2, np.float32)
    more = {"decoder_step": {"vocabulary": np.array([size], np.int64), "bias_V": bias, "square": square}}
    place = models / key
    with staged_bundle(place) as folder:
        (folder / "shared.spm").write_bytes(tokenizer)
        (folder / "fp32").mkdir()
        for part, text in GRAPHS.items():
            graph = parser.parse_model(text)
            arrays = more.get(part, {}).items()
            graph.graph.initializer.extend(numpy_helper.from_array(array, each) for each, array in arrays)
            onnx.checker.check_model(graph)
            onnx.save(graph, folder / "fp32" / f"{part}.onnx")
        name, version = key.split("/")
        source, target = languages.split("-")
        own = replace(manifest, name=name, version=version, source_language=source, target_language=target)
        seal(folder, replace(own, source_vocabulary=size, target_vocabulary=size))
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
