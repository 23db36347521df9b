"""Steps that are replayed, where a number's later runs do again what its first one did, as CUDA graphs do."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from dragoman_bundle.bundle import Bundle
from tests.engine.journey import VOCABULARY, Journey, assert_same, export_family

from dragoman_server.engine import Engine, EngineLimits, SearchOptions, Sentence, StepInput
from dragoman_server.engine.onnx import captured_steps
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.device_model import DeviceBatch, DeviceModel


class CapturingDevice:
    """Does to onnxruntime's runs what a GPU does.

    A number that comes again repeats the run that it was first given to, on the same buffers, and ignores
    what is bound.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.captured: dict[int, Any] = {}
        self.num_replays = 0
        self._run = onnxruntime.InferenceSession.run_with_iobinding
        device = self

        def run(session: Any, binding: Any, options: Any = None) -> None:
            device.run(session, binding, options)

        monkeypatch.setattr(onnxruntime.InferenceSession, "run_with_iobinding", run)

    def run(self, session: onnxruntime.InferenceSession, binding: Any, options: Any) -> None:
        if "token" not in {each.name for each in session.get_inputs()}:
            assert options is None
            self._run(session, binding)
            return
        # Without a number onnxruntime would capture it as number 0.
        number = int(options.get_run_config_entry("gpu_graph_id"))
        if number == -1:
            self._run(session, binding)
            return
        self.num_replays += number in self.captured
        self._run(session, self.captured.setdefault(number, binding))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> CapturingDevice:
    monkeypatch.setattr(captured_steps, "_STEPS_BEFORE", 2)
    return CapturingDevice(monkeypatch)


@pytest.fixture(scope="module", params=["luong", "plain"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return export_family(request.param, tmp_path_factory.mktemp("models"))


def open_decoder(bundle: Bundle, precision: str, *, shortlist: bool, max_captured_shapes: int) -> OnnxDecoder:
    """One that captures, with shapes padded as on a GPU."""
    decoder = OnnxDecoder.open(
        bundle,
        device="cpu",
        precision=precision,
        num_threads=1,
        use_shortlist=shortlist,
        stays_on_device=True,
        max_captured_shapes=max_captured_shapes,
    )
    assert decoder._device_model is not None
    decoder._device_model = DeviceModel(
        bundle,
        decoder._device_model.graphs,
        precision=precision,
        device="cpu",
        pads=True,
        max_captured_shapes=max_captured_shapes,
    )
    return decoder


@pytest.mark.parametrize("shortlist", [False, True], ids=["whole", "shortlist"])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_replayed_step_computes_the_same_bits(
    exported: Bundle, device: CapturingDevice, precision: str, shortlist: bool
) -> None:
    decoders = [
        open_decoder(exported, precision, shortlist=shortlist, max_captured_shapes=shapes)
        for shapes in (0, 50)
    ]
    for seed in range(4):
        journey, batches = Journey(seed, 3), [decoder.open_batch(3) for decoder in decoders]
        for _ in range(12):
            journey.regroup(decoders, batches)
            for _ in range(5):
                plain, replayed = journey.step(batches)
                assert_same(replayed, plain, tolerance=0)
    assert device.num_replays > 20


def test_attention_that_was_handed_out_is_not_overwritten(exported: Bundle, device: CapturingDevice) -> None:
    decoder = open_decoder(exported, "fp32", shortlist=False, max_captured_shapes=50)
    journey, batch = Journey(1, 3), decoder.open_batch(3)
    kept: list[tuple[Any, Any]] = []
    for _ in range(12):
        journey.regroup([decoder], [batch])
        for _ in range(5):
            (output,) = journey.step([batch])
            for array in (output.top_score_SC, output.top_index_SC, output.attention_SKT):
                kept.append((array, None if array is None else array.copy()))
    assert device.num_replays
    for array, before in kept:
        np.testing.assert_array_equal(array, before)


def test_an_engine_translates_alike_with_and_without(exported: Bundle, device: CapturingDevice) -> None:
    generator = np.random.default_rng(4)
    sentences = [
        Sentence(
            source=(*generator.integers(4, VOCABULARY, length).tolist(), 3),
            options=SearchOptions(
                beam_size=beam_size, num_hypotheses=beam_size, length_penalty=1.0, max_output_tokens=14
            ),
            target_prefix=(7, 9) if length % 4 == 0 else (),
            return_attention=length % 3 == 0,
        )
        for length in generator.integers(0, 30, 30)
        for beam_size in (1, 4)
    ]

    def translate(max_captured_shapes: int) -> list[list[tuple[tuple[int, ...], float]]]:
        decoder = open_decoder(exported, "int8", shortlist=True, max_captured_shapes=max_captured_shapes)
        engine = Engine(decoder, limits=EngineLimits(max_rows=20))
        engine.start()
        # Then one at a time, each a batch of its own.
        futures = [engine.submit([sentence])[0] for sentence in sentences]
        results = [future.result(timeout=60) for future in futures]
        results += [engine.submit([sentence])[0].result(timeout=60) for sentence in sentences[:10]]
        engine.close()
        return [[(found.tokens, found.score) for found in result.hypotheses] for result in results]

    expected = translate(0)
    assert not device.captured
    assert translate(50) == expected
    assert device.num_replays > 20


def test_only_so_many_shapes_have_places(exported: Bundle, device: CapturingDevice) -> None:
    decoder = open_decoder(exported, "fp32", shortlist=False, max_captured_shapes=2)
    journey, batch = Journey(3, 3), decoder.open_batch(3)
    for _ in range(20):
        journey.regroup([decoder], [batch])
        for _ in range(4):
            journey.step([batch])
    # Two places a shape, two states a place.
    assert 0 < len(device.captured) <= 2 * 2 * 2


def test_a_shape_has_places_only_when_it_was_used(exported: Bundle, device: CapturingDevice) -> None:
    decoder = open_decoder(exported, "fp32", shortlist=False, max_captured_shapes=50)
    step_alone(decoder, decoder.open_batch(1))
    assert not device.captured
    batch = decoder.open_batch(1)
    for _ in range(6):
        step_alone(decoder, batch)
    # Two places, and two states in each.
    assert len(device.captured) == 4
    assert device.num_replays == 2


def test_a_place_belongs_to_one_batch_until_that_is_gone(exported: Bundle, device: CapturingDevice) -> None:
    decoder = open_decoder(exported, "fp32", shortlist=False, max_captured_shapes=50)
    step_alone(decoder, decoder.open_batch(1))
    batches = [decoder.open_batch(1) for _ in range(3)]
    for batch in batches:
        step_alone(decoder, batch)
    held = [batch._place for batch in batches if isinstance(batch, DeviceBatch)]
    assert held[0] is not None
    assert held[1] is not None
    assert held[0] is not held[1]
    assert held[2] is None
    del batches[0], batch
    fourth = decoder.open_batch(1)
    step_alone(decoder, fourth)
    assert isinstance(fourth, DeviceBatch)
    assert fourth._place is held[0]


def test_steps_of_a_state_that_grows_are_not_captured_and_the_log_says_so(
    tmp_path_factory: pytest.TempPathFactory, device: CapturingDevice, caplog: pytest.LogCaptureFixture
) -> None:
    bundle = export_family("transformer", tmp_path_factory.mktemp("models"))
    decoder = OnnxDecoder.open(
        bundle, device="cpu", precision="fp32", stays_on_device=True, max_captured_shapes=50
    )
    assert "transformer/1 has no steps replayed from CUDA graphs: its state grows" in caplog.messages
    batch = decoder.open_batch(1)
    for _ in range(4):
        step_alone(decoder, batch)
    assert not device.captured


def step_alone(decoder: OnnxDecoder, batch: Any) -> None:
    """Two steps of one sentence, which joins an empty batch or takes the place of who is there."""
    is_first = batch._part is None
    batch.regroup(np.array([0 if is_first else 1]), [decoder.encode([[5, 6, 3]])], 8)
    for row in (0 if is_first else 1, 0):
        batch.step(
            StepInput(
                token_SK=np.array([[5]]),
                parent_SK=np.array([[row]]),
                score_SK=np.zeros((1, 1), np.float32),
                forced_SK=np.array([[0]]),
                wants_attention=False,
            )
        )
