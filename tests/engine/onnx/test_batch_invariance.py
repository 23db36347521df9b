"""The promise of batch invariance, on graphs that the exporter made of a trained model."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from dragoman_bundle.bundle import Bundle, open_bundle
from tests.shipped import shipped_bundle

from dragoman_server.engine import Engine, EngineLimits, SearchOptions, Sentence, SentenceResult
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.engine.onnx.session import DecoderOptions

TOLERANCE = {"fp32": 1e-5, "int8": 1e-3}


@pytest.fixture(scope="module")
def trained_bundle(toy_models: Path) -> Bundle:
    return open_bundle(toy_models / "toy" / "1")


@pytest.fixture(scope="module")
def lines(toy_folder: Path) -> list[str]:
    """A hundred sentences, a fifth of them several in one."""
    short = (toy_folder / "train.de").read_text().splitlines()[:80]
    return short + [" ".join(short[i : i + 2 + i % 5]) for i in range(20)]


def sentences(bundle: Bundle, lines: list[str], beam_size: int) -> list[Sentence]:
    options = SearchOptions(
        beam_size=beam_size, num_hypotheses=beam_size, length_penalty=1.0, max_output_tokens=40
    )
    return [
        Sentence(source=(*ids, bundle.manifest.source_ids.eos), options=options)
        for ids in bundle.source_tokenizer.encode_ids(lines)
    ]


def check_neighbours_do_not_matter(decoder: OnnxDecoder, wanted: list[Sentence], tolerance: float) -> None:
    """Decodes each sentence alone, then all of them in batches of several sizes and orders of arrival."""
    beam_size = wanted[0].options.beam_size
    engine = Engine(decoder, limits=EngineLimits())
    engine.start()
    alone: list[SentenceResult] = [engine.submit([sentence])[0].result() for sentence in wanted]
    engine.close()

    for seed, max_sentences in enumerate((64, 20, 3)):
        generator = random.Random(seed)
        order = generator.sample(range(len(wanted)), k=len(wanted))
        cuts = [0, *sorted(generator.sample(range(1, len(order)), k=9)), len(order)]
        limits = EngineLimits(max_rows=max_sentences * beam_size, max_beam_size=beam_size)
        engine = Engine(decoder, limits=limits)
        engine.start()
        futures = [f for a, b in pairwise(cuts) for f in engine.submit([wanted[i] for i in order[a:b]])]
        for i, future in zip(order, futures, strict=True):
            found, expected = future.result(timeout=60).hypotheses, alone[i].hypotheses
            assert [h.tokens for h in found] == [h.tokens for h in expected]
            assert [h.score for h in found] == pytest.approx(
                [h.score for h in expected], rel=0, abs=tolerance
            )
        engine.close()


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("beam_size", [1, pytest.param(4, marks=pytest.mark.long), 8])
def test_a_translation_does_not_depend_on_its_neighbours(
    trained_bundle: Bundle, lines: list[str], precision: str, beam_size: int
) -> None:
    decoder = open_decoder(trained_bundle, DecoderOptions(device="cpu", precision=precision))
    check_neighbours_do_not_matter(decoder, sentences(trained_bundle, lines, beam_size), TOLERANCE[precision])


@pytest.mark.parametrize("use_shortlist", [pytest.param(False, marks=pytest.mark.long), True])
def test_nor_does_that_of_the_shipped_model(lines: list[str], use_shortlist: bool) -> None:
    bundle = open_bundle(shipped_bundle("de-en"))
    decoder = open_decoder(
        bundle, DecoderOptions(device="cpu", precision="int8", use_shortlist=use_shortlist)
    )
    check_neighbours_do_not_matter(decoder, sentences(bundle, lines, 5), TOLERANCE["int8"])
