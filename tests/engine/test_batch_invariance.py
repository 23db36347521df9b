"""The promise of batch invariance, on graphs that the exporter made of a trained model."""

import random
from itertools import pairwise
from pathlib import Path

import pytest

from dragoman_bundle.bundle import Bundle, open_bundle
from dragoman_server.engine import (
    Engine,
    EngineLimits,
    OnnxDecoder,
    SearchOptions,
    Sentence,
    SentenceResult,
)

TOLERANCE = {"fp32": 1e-5, "int8": 1e-3}


@pytest.fixture(scope="module")
def trained_bundle(toy_models: Path) -> Bundle:
    return open_bundle(toy_models / "toy" / "1")


def sentences(bundle: Bundle, text: Path, beam_size: int) -> list[Sentence]:
    """Lines of the text, and longer ones that several make up."""
    lines = text.read_text().splitlines()
    lines += [" ".join(lines[i : i + 2 + i % 3]) for i in range(0, 40, 2)]
    options = SearchOptions(
        beam_size=beam_size, num_hypotheses=beam_size, length_penalty=1.0, max_output_tokens=40
    )
    return [
        Sentence(source=(*ids, bundle.manifest.source_ids.eos), options=options)
        for ids in bundle.source_tokenizer.encode_ids(lines)
    ]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("beam_size", [1, 4, 8])
def test_a_translation_does_not_depend_on_its_neighbours(
    trained_bundle: Bundle, toy_folder: Path, precision: str, beam_size: int
) -> None:
    decoder = OnnxDecoder.open(trained_bundle, device="cpu", precision=precision)
    wanted = sentences(trained_bundle, toy_folder / "test.de", beam_size)

    engine = Engine(decoder, limits=EngineLimits())
    engine.start()
    alone: list[SentenceResult] = [engine.submit([sentence])[0].result() for sentence in wanted]
    engine.close()

    for seed, max_rows in enumerate((320, 100, 3 * beam_size)):
        generator = random.Random(seed)
        order = generator.sample(range(len(wanted)), k=len(wanted))
        cuts = [0, *sorted(generator.sample(range(1, len(order)), k=5)), len(order)]
        engine = Engine(decoder, limits=EngineLimits(max_rows=max(16, max_rows)))
        engine.start()
        futures = [f for a, b in pairwise(cuts) for f in engine.submit([wanted[i] for i in order[a:b]])]
        for i, future in zip(order, futures, strict=True):
            found, expected = future.result(timeout=60).hypotheses, alone[i].hypotheses
            assert [h.tokens for h in found] == [h.tokens for h in expected]
            assert [h.score for h in found] == pytest.approx(
                [h.score for h in expected], rel=0, abs=TOLERANCE[precision]
            )
        engine.close()
