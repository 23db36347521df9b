"""Batches that stay on the device against those that regroup on the host, on a CPU that both can use."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dragoman_bundle.bundle import Bundle
from dragoman_bundle.manifest import REGROUP_GRAPH, SHORTLIST_GRAPH, STEP_GRAPH, FileEntry, graph_file
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st
from onnxruntime import InferenceSession, OrtValue
from tests.engine.exported import ON_DEVICE, VOCABULARY, export_family
from tests.engine.journey import Journey, assert_same
from tests.engine.tiny_graphs import tiny_bundle

from dragoman_export.graphs.regroup import write_regroup_graph
from dragoman_server.engine import DecoderError, Engine, EngineLimits, SearchOptions, Sentence, StepInput
from dragoman_server.engine.decoder import padded_rows
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.device_decoder import DeviceDecoder
from dragoman_server.engine.onnx.host_decoder import HostDecoder
from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.engine.onnx.session import (
    CPU_PROVIDER,
    CUDA_PROVIDER,
    DecoderOptions,
    find_strays,
    open_session,
)

TOLERANCE = {"fp32": 1e-5, "int8": 0.0}


@pytest.fixture(scope="module", params=ON_DEVICE)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return export_family(request.param, tmp_path_factory)


def open_on(bundle: Bundle, precision: str, *, shortlist: bool, on_device: bool) -> OnnxDecoder:
    options = DecoderOptions(
        device="cpu",
        precision=precision,
        num_threads=1,
        use_shortlist=shortlist,
        stays_on_device=on_device,
    )
    decoder = open_decoder(bundle, options)
    return type(decoder)(bundle, decoder.options, as_on_a_gpu(decoder.sessions))


def as_on_a_gpu(sessions: Mapping[str, InferenceSession]) -> dict[str, InferenceSession]:
    """A greedy search has the shortlist, too."""
    left_out = STEP_GRAPH if SHORTLIST_GRAPH in sessions else None
    return {graph: session for graph, session in sessions.items() if graph != left_out}


def padding_decoder(bundle: Bundle, precision: str, *, shortlist: bool) -> DeviceDecoder:
    """A decoder that stays on the device and pads shapes, as on a GPU."""
    decoder = open_on(bundle, precision, shortlist=shortlist, on_device=True)
    return DeviceDecoder(bundle, decoder.options, decoder.sessions, pads=True)


@pytest.mark.parametrize("shortlist", [False, True], ids=["whole", "shortlist"])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_batch_on_the_device_computes_the_same_bits(
    exported: Bundle, precision: str, shortlist: bool
) -> None:
    travel_alike(exported, precision, shortlist=shortlist)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_so_it_does_in_the_precisions_of_a_gpu(tmp_path: Path, tokenizer: Tokenizer, precision: str) -> None:
    bundle = tiny_bundle(tmp_path, tokenizer, (precision,))
    write_regroup_graph(bundle.manifest.contract, precision, tmp_path / precision)
    files = {graph_file(precision, REGROUP_GRAPH): FileEntry(sha256="0" * 64, size=0)}
    bundle = replace(bundle, manifest=replace(bundle.manifest, files=files))
    travel_alike(bundle, precision, shortlist=False)


def travel_alike(bundle: Bundle, precision: str, *, shortlist: bool) -> None:
    """Leads a batch on the host and one on the device through the same courses."""
    decoders = [
        open_on(bundle, precision, shortlist=shortlist, on_device=on_device) for on_device in (False, True)
    ]
    assert [type(decoder) for decoder in decoders] == [HostDecoder, DeviceDecoder]

    @settings(max_examples=6, derandomize=True, database=None)
    @given(seed=st.integers(0, 10_000), beam_size=st.sampled_from([1, 3]))
    def travel(seed: int, beam_size: int) -> None:
        journey, batches = Journey(seed, beam_size), [decoder.open_batch(beam_size) for decoder in decoders]
        for _ in range(8):
            journey.regroup(decoders, batches)
            for _ in range(1 + seed % 3):
                on_host, on_device = journey.step(batches)
                assert_same(on_device, on_host, tolerance=0)

    travel()


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_padding_shapes_changes_no_result(exported: Bundle, precision: str) -> None:
    decoders = [
        open_on(exported, precision, shortlist=True, on_device=False),
        padding_decoder(exported, precision, shortlist=True),
    ]
    journey, batches = Journey(11, 3), [decoder.open_batch(3) for decoder in decoders]
    for _ in range(12):
        journey.regroup(decoders, batches)
        for _ in range(2):
            on_host, on_device = journey.step(batches)
            assert_same(on_device, on_host, TOLERANCE[precision])


def translate(decoder: OnnxDecoder, sentences: list[Sentence], max_rows: int) -> list[list[tuple[int, ...]]]:
    engine = Engine(decoder, limits=EngineLimits(max_rows=max_rows))
    engine.start()
    futures = [engine.submit([sentence])[0] for sentence in sentences]
    results = [future.result(timeout=60) for future in futures]
    engine.close()
    return [[hypothesis.tokens for hypothesis in result.hypotheses] for result in results]


@pytest.mark.parametrize("shortlist", [False, True], ids=["whole", "shortlist"])
def test_an_engine_translates_alike_with_both(exported: Bundle, shortlist: bool) -> None:
    generator = np.random.default_rng(4)
    options = SearchOptions(beam_size=4, num_hypotheses=4, length_penalty=1.0, max_output_tokens=12)
    sentences = [
        Sentence(
            source=(*generator.integers(4, VOCABULARY, length).tolist(), 3),
            options=options,
            target_prefix=(7, 9) if length % 4 == 0 else (),
            return_attention=length % 3 == 0,
        )
        for length in generator.integers(0, 30, 24)
    ]
    on_host = open_on(exported, "int8", shortlist=shortlist, on_device=False)
    expected = translate(on_host, sentences, max_rows=64)
    for decoder in (
        open_on(exported, "int8", shortlist=shortlist, on_device=True),
        padding_decoder(exported, "int8", shortlist=shortlist),
    ):
        assert translate(decoder, sentences, max_rows=20) == expected


def test_on_a_cpu_batches_regroup_on_the_host_unless_asked_otherwise(exported: Bundle) -> None:
    decoder = open_decoder(exported, DecoderOptions(device="cpu"))
    assert isinstance(decoder, HostDecoder)
    assert REGROUP_GRAPH not in decoder.providers
    on_device = open_on(exported, "fp32", shortlist=False, on_device=True)
    assert on_device.providers[REGROUP_GRAPH] == CPU_PROVIDER


def test_a_bundle_without_the_graph_works_through_the_host(tmp_path: Path, tokenizer: Tokenizer) -> None:
    bundle = tiny_bundle(tmp_path, tokenizer)
    assert isinstance(open_decoder(bundle, DecoderOptions(device="cpu")), HostDecoder)
    with pytest.raises(DecoderError, match=r"has no graph 'regroup' in fp32.*export the model again"):
        open_decoder(bundle, DecoderOptions(device="cpu", stays_on_device=True))


def test_nothing_but_a_steps_results_comes_to_the_host(
    exported: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = open_on(exported, "fp32", shortlist=True, on_device=True)
    shapes: list[list[int]] = []
    fetch = OrtValue.numpy

    def note(value: OrtValue) -> Any:
        shapes.append(list(value.shape()))
        return fetch(value)

    monkeypatch.setattr(OrtValue, "numpy", note)
    monkeypatch.setattr(InferenceSession, "run", None, raising=False)
    batch = decoder.open_batch(2)
    batch.regroup(
        np.arange(3), [decoder.encode([[5, 3], [6, 3]], 2), decoder.encode([[4, 5, 6, 7, 3]], 2)], 8
    )
    none_SK = np.zeros((3, 2), np.int64)
    parent_SK = np.array([[0, 0], [1, 1], [2, 2]])
    rows = StepInput(
        token_SK=none_SK + 5,
        parent_SK=parent_SK,
        score_SK=np.zeros((3, 2), np.float32),
        forced_SK=none_SK,
        wants_attention=False,
    )
    batch.step(rows)
    batch.regroup(np.array([0, 3]), [decoder.encode([[9, 3]], 2)], 8)
    assert shapes == [[3, 4], [3, 4], [3, 2]]


def test_shapes_come_from_few_sizes(exported: Bundle) -> None:
    decoder = padding_decoder(exported, "int8", shortlist=True)
    journey, batch = Journey(3, 3), decoder.open_batch(3)
    growing = {spec.name: spec.growth_axis for spec in exported.manifest.contract.state}
    for _ in range(12):
        journey.regroup([decoder], [batch])
        part = batch._part
        for name, value in {**part.memory, **part.state, **batch._candidate_memory}.items():
            sizes = value.shape()
            assert sizes[0] == padded_rows(sizes[0]), name
        (output,) = journey.step([batch])
        num_sentences = len(output.top_score_SC)
        for name, value in batch._part.state.items():
            assert value.shape()[0] == 3 * padded_rows(num_sentences), name
            if growing[name] is not None:
                assert value.shape()[growing[name]] == batch._num_grown


def test_every_node_of_the_regroup_graph_must_be_on_the_device(exported: Bundle) -> None:
    session = open_session(
        exported.graph_path("fp32", REGROUP_GRAPH),
        DecoderOptions(device="cpu", num_threads=1),
        may_leave_shapes=False,
    )
    assert find_strays(session, CPU_PROVIDER, may_leave_shapes=False) == []
    strays = find_strays(session, CUDA_PROVIDER, may_leave_shapes=False)
    operators = {stray.rpartition("(")[2].rstrip(")") for stray in strays}
    assert {"Gather", "Concat"} <= operators
