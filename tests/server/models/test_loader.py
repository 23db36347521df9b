"""What the configuration makes of a model's engine."""

import gc

import onnxruntime
from dragoman_bundle import Bundle, open_bundle
from tests.shipped import shipped_bundle

from dragoman_server.config import EngineConfig, RequestLimits
from dragoman_server.engine import BatchStepped, EngineLimits, Event, SearchOptions, Sentence
from dragoman_server.engine.onnx.opening import GREEDY_SHORTLIST_VOCABULARY
from dragoman_server.models.loader import decoder_options, engine_limits, open_engine

SHIPPED = shipped_bundle("de-en")


def sentence(bundle: Bundle, beam_size: int) -> Sentence:
    options = SearchOptions(beam_size=beam_size, num_hypotheses=1, length_penalty=1.0, max_output_tokens=8)
    return Sentence(source=(10, 11, 12, bundle.manifest.source_ids.eos), options=options)


def test_an_engine_without_a_server_has_the_limits_that_one_of_a_server_has_by_default() -> None:
    assert engine_limits(EngineConfig(), RequestLimits.max_beam_size) == EngineLimits()


def test_whoever_starts_processes_that_decode_opens_no_graph() -> None:
    bundle = open_bundle(SHIPPED)
    config = EngineConfig(threads=2)

    def num_sessions() -> int:
        gc.collect()
        return sum(type(found) is onnxruntime.InferenceSession for found in gc.get_objects())

    before = num_sessions()
    running = open_engine(
        bundle, decoder_options(config), config, max_beam_size=4, warm_up=sentence(bundle, 4)
    )
    try:
        assert running.engine.submit([sentence(bundle, 4)])[0].result(60).hypotheses
        assert num_sessions() == before
        is_large = bundle.manifest.target_vocabulary >= GREEDY_SHORTLIST_VOCABULARY
        assert (running.precision, running.has_shortlist(4)) == ("int8", True)
        assert running.has_shortlist(1) is is_large
    finally:
        running.engine.close()


def test_a_large_vocabulary_has_fewer_rows_decoded_at_a_time() -> None:
    bundle = open_bundle(SHIPPED)
    config = EngineConfig(threads=1, max_score_memory=1)
    fitting = 2**20 // (4 * bundle.manifest.target_vocabulary)
    steps: list[int] = []

    def hear(event: Event) -> None:
        if isinstance(event, BatchStepped):
            steps.append(event.num_rows)

    for beam_size, most in ((2, fitting // 2 * 2), (fitting + 3, fitting + 3)):
        steps.clear()
        running = open_engine(bundle, decoder_options(config), config, max_beam_size=beam_size, listener=hear)
        try:
            for future in running.engine.submit([sentence(bundle, beam_size)] * 40):
                future.result(60)
        finally:
            running.engine.close()
        assert max(steps) == most
