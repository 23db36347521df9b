"""Bundles of every family, exported as any other, and sentences for an engine over them."""

import random
from pathlib import Path

import numpy as np
import pytest
from dragoman_bundle.bundle import Bundle, open_bundle
from dragoman_bundle.search import beam_search
from dragoman_bundle.shortlist import Shortlist
from tests.export.toy_checkpoint import make_members, random_sources, train_tokenizer
from tests.once import once, shared_folder

from dragoman_export.assembly import export_subject
from dragoman_export.trained import subject_of
from dragoman_server.engine import Engine, EngineLimits, SearchOptions, Sentence, SentenceResult
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.engine.onnx.session import DecoderOptions
from dragoman_training.checkpoint import as_one
from dragoman_training.decoding.translator import TorchStepper

VOCABULARY = 40
ON_DEVICE = ("luong", "plain", "transformer")
"""Families whose batches are tried on a device, too, with a shortlist."""


def make_shortlist() -> Shortlist:
    """Candidates that differ from sentence to sentence, in kind and number."""
    generator = np.random.default_rng(2)
    sizes = generator.integers(0, 6, VOCABULARY)
    return Shortlist(
        first_V=np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32),
        target_N=generator.integers(4, VOCABULARY, sizes.sum()).astype(np.uint16),
        always=np.array([3, 4, 5], np.uint16),
        target_vocabulary=VOCABULARY,
    )


def export_family(name: str, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The toy checkpoint of that name, or the ensemble, in fp32 and int8, made once a run."""

    def make(folder: Path) -> None:
        export_subject(
            subject_of(make_members(name, train_tokenizer(VOCABULARY))),
            folder / name / "1",
            precisions=["fp32", "int8"],
            build_shortlist=make_shortlist if name in ON_DEVICE else None,
            report=lambda line: None,
        )

    return open_bundle(once(shared_folder(tmp_path_factory) / f"exported-{name}", make) / name / "1")


def open_plain(exported: Bundle, precision: str) -> OnnxDecoder:
    """A decoder without the shortlist."""
    options = DecoderOptions(device="cpu", precision=precision, num_threads=1, use_shortlist=False)
    return open_decoder(exported, options)


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
    beam_size = max(sentence.options.beam_size for sentence in sentences)
    engine = Engine(decoder, limits=EngineLimits(max_rows=max_rows, max_beam_size=beam_size))
    engine.start()
    # One by one, so that some join while others are under way.
    futures = [engine.submit([sentence])[0] for sentence in sentences]
    results = [future.result(timeout=60) for future in futures]
    engine.close()
    return results


def check_who_joins_decodes_as_alone(
    decoder: OnnxDecoder, beam_size: int, max_rows: tuple[int, ...], tolerance: float
) -> None:
    """Decodes sentences each alone, then all of them in running batches of so many rows at most."""
    sentences = random_sentences(beam_size)
    alone = [translate(decoder, [sentence], max_rows=16)[0] for sentence in sentences]
    # They leave at different steps.
    assert len({max(len(found.tokens) for found in result.hypotheses) for result in alone}) > 5
    for rows in max_rows:
        found = translate(decoder, sentences, rows)
        for sentence, one, other in zip(sentences, found, alone, strict=True):
            for mine, expected in zip(one.hypotheses, other.hypotheses, strict=True):
                assert mine.tokens == expected.tokens
                assert mine.score == pytest.approx(expected.score, rel=0, abs=tolerance)
                if sentence.return_attention:
                    np.testing.assert_allclose(mine.attention, expected.attention, atol=1e-5)


def check_it_decodes_what_pytorch_does(exported: Bundle) -> None:
    """In fp32, with the recipe's search."""
    members = make_members(exported.manifest.name, train_tokenizer(VOCABULARY))
    decoder = open_plain(exported, "fp32")
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
