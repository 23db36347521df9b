"""Sentences of every age in one running batch of a Transformer, whose past grows with each step."""

import random

import numpy as np
import pytest
from tests.export.toy_checkpoint import make_members, random_sources, train_tokenizer

from dragoman_bundle.bundle import Bundle, open_bundle
from dragoman_export.exporter import export_bundle
from dragoman_server.engine import Engine, EngineLimits, OnnxDecoder, SearchOptions, Sentence, SentenceResult
from dragoman_server.engine.decoder import StepInput
from dragoman_server.engine.onnx_batch import OnnxBatch
from dragoman_training.members import as_one
from dragoman_training.search import beam_search
from dragoman_training.stepper import TorchStepper

TOLERANCE = {"fp32": 1e-5, "int8": 1e-3}
VOCABULARY = 40


@pytest.fixture(scope="module", params=["transformer", "transformer-post", "ensemble"])
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("models") / request.param / "1"
    export_bundle(
        make_members(request.param, train_tokenizer(VOCABULARY)),
        folder,
        name=request.param,
        version="1",
        precisions=["fp32", "int8"],
        report=lambda line: None,
    )
    return open_bundle(folder)


def random_sentences(beam_size: int) -> list[Sentence]:
    generator = random.Random(beam_size)
    sources = random_sources([generator.randint(1, 30) for _ in range(40)], VOCABULARY, eos_id=3)
    return [
        Sentence(
            source=tuple(source),
            options=SearchOptions(
                beam_size=beam_size,
                num_hypotheses=beam_size,
                length_penalty=1.0,
                max_output_tokens=generator.randint(2, 40),
            ),
            target_prefix=(7, 9) if number % 5 == 0 else (),
            return_attention=number % 3 == 0,
        )
        for number, source in enumerate(sources)
    ]


def translate(decoder: OnnxDecoder, sentences: list[Sentence], max_rows: int) -> list[SentenceResult]:
    engine = Engine(decoder, limits=EngineLimits(max_rows=max_rows))
    engine.start()
    # One by one, so that some join while others are under way.
    futures = [engine.submit([sentence])[0] for sentence in sentences]
    results = [future.result(timeout=60) for future in futures]
    engine.close()
    return results


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("beam_size", [1, 4, 5])
def test_whoever_joins_a_running_batch_decodes_to_what_it_decodes_to_alone(
    exported: Bundle, precision: str, beam_size: int
) -> None:
    decoder = OnnxDecoder.open(exported, device="cpu", precision=precision, num_threads=1)
    sentences = random_sentences(beam_size)
    alone = [translate(decoder, [sentence], max_rows=16)[0] for sentence in sentences]
    assert len({len(result.hypotheses[0].tokens) for result in alone}) > 5
    for max_rows in (4 * beam_size, 11 * beam_size, 320):
        found = translate(decoder, sentences, max(16, max_rows))
        for sentence, one, other in zip(sentences, found, alone, strict=True):
            for mine, expected in zip(one.hypotheses, other.hypotheses, strict=True):
                assert mine.tokens == expected.tokens
                # Bit for bit in int8, where a difference would grow.
                tolerance = 0 if precision == "int8" else TOLERANCE[precision]
                assert mine.score == pytest.approx(expected.score, rel=0, abs=tolerance)
                if sentence.return_attention:
                    np.testing.assert_allclose(mine.attention, expected.attention, atol=1e-5)


def open_batch(decoder: OnnxDecoder, num_sentences: int) -> OnnxBatch:
    batch = decoder.open_batch()
    batch.regroup(np.arange(num_sentences), [decoder.encode([[4 + n, 3] for n in range(num_sentences)])], 8)
    return batch


def step(batch: OnnxBatch, parent_S: list[int]) -> np.ndarray:
    parent_S1 = np.array(parent_S)[:, None]
    output = batch.step(
        StepInput(
            token_SK=np.full_like(parent_S1, 5),
            parent_SK=parent_S1,
            score_SK=np.zeros(parent_S1.shape, np.float32),
            forced_SK=np.zeros_like(parent_S1),
            wants_attention=False,
        )
    )
    return output.top_score_SC


def past(batch: OnnxBatch) -> int:
    (keys,) = (value for name, value in batch._state.items() if name.endswith(".keys0"))
    return int(keys.shape()[2])


def test_the_past_is_as_long_as_the_oldest_who_is_there(exported: Bundle) -> None:
    decoder = OnnxDecoder.open(exported, device="cpu", precision="fp32", num_threads=1)
    batch = open_batch(decoder, 1)
    for _ in range(6):
        step(batch, [0])
    # One joins, the first leaves, and so on without end.
    for _ in range(5):
        batch.regroup(np.array([0, 1]), [decoder.encode([[9, 3]])], 8)
        assert past(batch) <= 6
        for _ in range(3):
            step(batch, [0, 1])
        batch.regroup(np.array([1]), [], 8)
        assert past(batch) == 3
        step(batch, [1])
        for _ in range(2):
            step(batch, [0])


def test_trimming_changes_nothing_for_those_who_stay(exported: Bundle) -> None:
    decoder = OnnxDecoder.open(exported, device="cpu", precision="int8", num_threads=1)
    alone, batch = open_batch(decoder, 1), open_batch(decoder, 2)
    for _ in range(9):
        step(batch, [0, 1])
    batch.regroup(np.array([2]), [decoder.encode([[4, 3]])], 8)
    assert past(batch) == 0
    assert np.array_equal(step(batch, [2]), step(alone, [0]))
    for _ in range(4):
        assert np.array_equal(step(batch, [0]), step(alone, [0]))


def test_the_engine_decodes_what_pytorch_does(exported: Bundle) -> None:
    members = make_members(exported.manifest.name, train_tokenizer(VOCABULARY))
    decoder = OnnxDecoder.open(exported, device="cpu", precision="fp32", num_threads=1)
    decoding = members[0].recipe.decoding
    sources = random_sources([3, 12, 25], VOCABULARY, eos_id=3)
    stepper = TorchStepper(as_one(members), source_pad_id=0, bos_id=2, eos_id=3)
    options = SearchOptions(
        beam_size=decoding.beam_size,
        num_hypotheses=decoding.beam_size,
        length_penalty=decoding.length_penalty,
        max_output_tokens=decoding.max_output_tokens,
    )
    sentences = [Sentence(source=tuple(source), options=options) for source in sources]
    found = translate(decoder, sentences, max_rows=64)
    for one, expected in zip(found, beam_search(stepper, sources, decoding), strict=True):
        assert [h.tokens for h in one.hypotheses] == [h.tokens for h in expected]
        assert [h.score for h in one.hypotheses] == pytest.approx([h.score for h in expected], abs=1e-4)
