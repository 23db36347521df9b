"""Engines of real models: what the configuration makes of them, and what they answer."""

import gc
from dataclasses import replace
from pathlib import Path

import onnxruntime
import pytest
import sacrebleu
from dragoman_bundle import Bundle, open_bundle
from tests.conftest import WORDS
from tests.engine import house
from tests.server.calls import GERMAN, item, linked, translate
from tests.server.conftest import CPU, StartServer
from tests.shipped import shipped_bundle

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.config import EngineConfig, RequestLimits
from dragoman_server.engine import BatchStepped, EngineLimits, Event, Sentence
from dragoman_server.engine.onnx.opening import GREEDY_SHORTLIST_VOCABULARY
from dragoman_server.models.loader import decoder_options, engine_limits, open_engine

SHIPPED = shipped_bundle("de-en")


def sentence(bundle: Bundle, beam_size: int) -> Sentence:
    return house.sentence(10, 11, 12, bundle.manifest.source_ids.eos, steps=8, beam_size=beam_size)


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


@pytest.mark.parametrize("precision", ["fp32", "int8"])
async def test_it_translates_and_aligns(
    start_server: StartServer, toy_models: Path, toy_folder: Path, precision: str
) -> None:
    running = await start_server(models=toy_models, engine=replace(CPU, precision=precision))
    sources = (toy_folder / "test.de").read_text().splitlines()
    # All in one text, of which the white space stays.
    text = "\n ".join(sources)
    request = pb.TranslateRequest(texts=[text], return_alignments=True, **GERMAN)
    (translation,) = (await running.stub.Translate(request)).translations
    references = (toy_folder / "test.en").read_text().splitlines()
    assert len(translation.text.split("\n ")) == translation.sentences == len(sources)
    assert sacrebleu.corpus_bleu(translation.text.split("\n "), [references]).score > 60
    weights = [link.weight for link in translation.hypotheses[0].alignments]
    pairs = [pair for pair, weight in zip(linked(text, translation), weights, strict=True) if weight > 0.5]
    right = sum(WORDS.get(source, source) == target for source, target in pairs)
    # One word in seven would be chance; a model of this size leans on the noun for its article.
    assert right > 0.5 * len(pairs)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
async def test_one_by_one_together_and_streamed_are_the_same(
    start_server: StartServer, toy_models: Path, toy_folder: Path, precision: str
) -> None:
    running = await start_server(models=toy_models, engine=replace(CPU, precision=precision))
    lines = (toy_folder / "test.de").read_text().splitlines()
    alone = [(await translate(running, line))[0] for line in lines]
    config = pb.TranslateStreamRequest(config=pb.TranslateStreamConfig(**GERMAN))
    items = [item(str(number), line) for number, line in enumerate(lines)]
    call = running.stub.TranslateStream(iter([config, *items]))
    streamed = {int(response.id): response.translation async for response in call}
    for number, translation in enumerate(await translate(running, *lines)):
        for other in (alone[number], streamed[number]):
            assert other.text == translation.text
            tolerance = 1e-5 if precision == "fp32" else 1e-3
            assert other.hypotheses[0].score == pytest.approx(translation.hypotheses[0].score, abs=tolerance)
