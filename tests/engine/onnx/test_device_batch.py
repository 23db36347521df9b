"""Batches that stay on the device against those that regroup on the host, on a CPU that both can use."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dragoman_bundle.bundle import Bundle
from dragoman_bundle.manifest import REGROUP_GRAPH, SHORTLIST_GRAPH, STEP_GRAPH
from hypothesis import given, settings
from hypothesis import strategies as st
from onnxruntime import InferenceSession, OrtValue
from tests.engine.exported import (
    ON_DEVICE,
    VOCABULARY,
    export_family,
    random_sentences,
    step_input,
    translate,
)

from dragoman_server.engine import DecoderError, Sentence, StepInput, StepOutput
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
from dragoman_server.engine.onnx.tensors import Memory, Moves


class Journey:
    """A random course of joins, leaves and steps, through which several batches are led alike."""

    def __init__(self, seed: int, beam_size: int) -> None:
        self._random = np.random.default_rng(seed)
        self._beam_size = beam_size
        self._num_sentences = 0
        self._last: StepOutput | None = None

    def regroup(self, decoders: list[OnnxDecoder], batches: list[Any]) -> None:
        """Some leave, and up to three groups join."""
        stays = self._random.random(self._num_sentences) < self._random.choice([0.3, 0.8, 1.0])
        num_groups = self._random.integers(0 if stays.any() else 1, 4)
        groups = [
            [
                [*self._random.integers(4, VOCABULARY, self._random.integers(0, 20)).tolist(), 3]
                for _ in range(self._random.integers(1, 4))
            ]
            for _ in range(num_groups)
        ]
        num_joined = sum(map(len, groups))
        present = [*np.flatnonzero(stays), *(self._num_sentences + np.arange(num_joined))]
        end = min(len(present), self._num_sentences)
        others = iter([place for place in present if place >= end])
        origin_S = np.array(
            [place if place < end and stays[place] else next(others) for place in range(len(present))],
            np.int64,
        )
        positions = int(self._random.choice([24, 32]))
        for decoder, batch in zip(decoders, batches, strict=True):
            batch.regroup(origin_S, [decoder.encode(group, self._beam_size) for group in groups], positions)
        K, S = self._beam_size, len(origin_S)
        parent_SK = np.zeros((self._num_sentences, K), np.int64)
        score_SK = np.zeros((self._num_sentences, K), np.float32)
        if self._last is not None:
            row_SK = self._last.top_index_SC[:, :K] // VOCABULARY
            parent_SK = row_SK + np.arange(self._num_sentences)[:, None] * K
            score_SK = self._last.top_score_SC[:, :K]
        first_SK = np.repeat(self._num_sentences * K + np.arange(num_joined)[:, None], K, axis=1)
        new_score_SK = np.full((num_joined, K), -np.inf, np.float32)
        new_score_SK[:, 0] = 0
        self._parent_SK = np.concatenate([parent_SK, first_SK])[origin_S]
        self._score_SK = np.concatenate([score_SK, new_score_SK])[origin_S]
        self._num_sentences = S

    def step(self, batches: list[Any]) -> list[StepOutput]:
        """One token for all; some sentences are forced to one of any kind."""
        S, K = self._parent_SK.shape
        forced_SK = np.zeros((S, K), np.int64)
        if self._random.random() < 0.3:
            forced_SK[self._random.integers(0, S), 0] = self._random.integers(4, VOCABULARY)
        rows = StepInput(
            token_SK=self._random.integers(4, VOCABULARY, (S, K)),
            parent_SK=self._parent_SK,
            score_SK=self._score_SK,
            forced_SK=forced_SK,
            wants_attention=bool(self._random.random() < 0.5),
        )
        outputs = [batch.step(rows) for batch in batches]
        self._last = outputs[0]
        self._parent_SK = outputs[0].top_index_SC[:, :K] // VOCABULARY + np.arange(S)[:, None] * K
        self._score_SK = outputs[0].top_score_SC[:, :K].copy()
        return outputs


def assert_same(found: StepOutput, expected: StepOutput, tolerance: float) -> None:
    is_real = expected.top_score_SC > -np.inf
    assert found.top_score_SC.shape == expected.top_score_SC.shape
    pairs = [
        (found.top_score_SC, expected.top_score_SC),
        (found.forced_score_SK, expected.forced_score_SK),
        (found.attention_SKT, expected.attention_SKT),
    ]
    if not tolerance:
        np.testing.assert_array_equal(found.top_index_SC[is_real], expected.top_index_SC[is_real])
    for one, other in pairs:
        if other is None:
            assert one is None
        else:
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)


TOLERANCE = {"fp32": 1e-5, "int8": 0.0}


@pytest.fixture(scope="module", params=ON_DEVICE)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return export_family(request.param, tmp_path_factory)


def open_on(bundle: Bundle, precision: str, *, shortlist: bool, on_device: bool) -> OnnxDecoder:
    options = DecoderOptions(
        device="cpu", precision=precision, num_threads=1, use_shortlist=shortlist, stays_on_device=on_device
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


def test_so_it_does_in_the_precision_of_a_gpu(bundle: Bundle) -> None:
    travel_alike(bundle, "fp16", shortlist=False)


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


def tokens(decoder: OnnxDecoder, sentences: list[Sentence], max_rows: int) -> list[list[tuple[int, ...]]]:
    results = translate(decoder, sentences, max_rows)
    return [[hypothesis.tokens for hypothesis in result.hypotheses] for result in results]


@pytest.mark.parametrize("shortlist", [False, True], ids=["whole", "shortlist"])
def test_an_engine_translates_alike_with_both(exported: Bundle, shortlist: bool) -> None:
    sentences = random_sentences(4)[:24]
    on_host = open_on(exported, "int8", shortlist=shortlist, on_device=False)
    expected = tokens(on_host, sentences, max_rows=64)
    for decoder in (
        open_on(exported, "int8", shortlist=shortlist, on_device=True),
        padding_decoder(exported, "int8", shortlist=shortlist),
    ):
        assert tokens(decoder, sentences, max_rows=20) == expected


def test_on_a_cpu_batches_regroup_on_the_host_unless_asked_otherwise(exported: Bundle) -> None:
    decoder = open_decoder(exported, DecoderOptions(device="cpu"))
    assert isinstance(decoder, HostDecoder)
    assert REGROUP_GRAPH not in decoder.providers
    on_device = open_on(exported, "fp32", shortlist=False, on_device=True)
    assert on_device.providers[REGROUP_GRAPH] == CPU_PROVIDER


def test_a_bundle_without_the_graph_works_through_the_host(bundle: Bundle) -> None:
    files = {name: entry for name, entry in bundle.manifest.files.items() if REGROUP_GRAPH not in name}
    bundle = replace(bundle, manifest=replace(bundle.manifest, files=files))
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
    groups = [decoder.encode([[5, 3], [6, 3]], 2), decoder.encode([[4, 5, 6, 7, 3]], 2)]
    batch.regroup(np.arange(3), groups, 8)
    batch.step(step_input(np.full((3, 2), 5), np.array([[0, 0], [1, 1], [2, 2]])))
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
    path, options = exported.graph_path("fp32", REGROUP_GRAPH), DecoderOptions(device="cpu", num_threads=1)
    session = open_session(path, options, may_leave_shapes=False)
    assert find_strays(session, CPU_PROVIDER, may_leave_shapes=False) == []
    strays = find_strays(session, CUDA_PROVIDER, may_leave_shapes=False)
    operators = {stray.rpartition("(")[2].rstrip(")") for stray in strays}
    assert {"Gather", "Concat"} <= operators


def regroup(memory: Memory, origin: np.ndarray, joined: list[np.ndarray], source_positions: int) -> None:
    num_before = 0 if memory._buffer is None else len(memory.array)
    memory.regroup(Moves(origin, num_before, [len(array) for array in joined]), joined, source_positions)


def test_random_regrouping_equals_concatenating_and_gathering() -> None:
    random = np.random.default_rng(0)
    memory, expected, serial = Memory(padded_axis=2), np.zeros((0, 2, 0), np.float32), 0
    for _ in range(60):
        groups = [
            random.random((random.integers(1, 4), 2, random.integers(1, 9))).astype(np.float32)
            for _ in range(random.integers(0 if len(expected) else 1, 3))
        ]
        num_before = len(expected)
        present = [p for p in range(num_before) if random.random() < 0.7]
        present += range(num_before, num_before + sum(map(len, groups)))
        if not present:
            continue
        size = len(present)
        rest = iter([p for p in present if p >= min(size, num_before)])
        origin = np.array([p if p in present and p < num_before else next(rest) for p in range(size)])
        positions = int(random.choice([8, 16]))
        padded = [np.pad(part, ((0, 0), (0, 0), (0, 16 - part.shape[2]))) for part in (expected, *groups)]
        expected = np.concatenate(padded)[origin][:, :, :positions]
        regroup(memory, origin, groups, positions)
        np.testing.assert_array_equal(memory.array, expected)
        serial += 1
    assert serial > 40
