"""Bundles of every family, exported as any other, and sentences for an engine over them."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from dragoman_bundle.bundle import Bundle, open_bundle
from dragoman_bundle.shortlist import Shortlist
from tests.engine.house import decode, searched
from tests.export.toy_checkpoint import make_members, random_sources, train_tokenizer
from tests.once import once, shared_folder

from dragoman_export.assembly import export_subject
from dragoman_export.trained import subject_of
from dragoman_server.engine import EngineLimits, Sentence, SentenceResult, StepInput
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.opening import open_decoder
from dragoman_server.engine.onnx.session import DecoderOptions

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


def export_family(
    name: str, tmp_path_factory: pytest.TempPathFactory, precisions: Sequence[str] = ("fp32", "int8")
) -> Bundle:
    """The toy checkpoint of that name, or the ensemble, made once a run."""

    def make(folder: Path) -> None:
        export_subject(
            subject_of(make_members(name, train_tokenizer(VOCABULARY))),
            folder / name / "1",
            precisions=precisions,
            build_shortlist=make_shortlist if name in ON_DEVICE else None,
            report=lambda line: None,
        )

    folder = shared_folder(tmp_path_factory) / f"exported-{name}-{'-'.join(precisions)}"
    return open_bundle(once(folder, make) / name / "1")


def open_plain(exported: Bundle, precision: str) -> OnnxDecoder:
    """A decoder without the shortlist."""
    options = DecoderOptions(device="cpu", precision=precision, num_threads=1, use_shortlist=False)
    return open_decoder(exported, options)


def random_sentences(*beam_sizes: int) -> list[Sentence]:
    """Forty, each of one of these beams, as many hypotheses, and a length and a prefix of its own."""
    generator = random.Random(beam_sizes[0])
    sources = random_sources([generator.randint(1, 30) for _ in range(40)], VOCABULARY, eos_id=3)
    sentences = []
    for number, source in enumerate(sources):
        options = searched(generator.choice(beam_sizes), generator.randint(3, 40))
        prefix = (7, 9) if number % 5 == 0 else ()
        is_looked_at = number % 3 == 0
        sentences.append(
            Sentence(
                source=tuple(source), options=options, target_prefix=prefix, return_attention=is_looked_at
            )
        )
    return sentences


def step_input(token_SK: np.ndarray, parent_SK: np.ndarray, score_SK: np.ndarray | None = None) -> StepInput:
    """Rows of which none is forced, and nobody asks for the attention."""
    return StepInput(
        token_SK=token_SK,
        parent_SK=parent_SK,
        score_SK=np.zeros(token_SK.shape, np.float32) if score_SK is None else score_SK,
        forced_SK=np.zeros_like(token_SK),
        wants_attention=False,
    )


def translate(decoder: OnnxDecoder, sentences: list[Sentence], max_rows: int) -> list[SentenceResult]:
    """One by one, so that some join while others are under way."""
    beam_size = max(sentence.options.beam_size for sentence in sentences)
    limits = EngineLimits(max_rows=max_rows, max_beam_size=beam_size)
    return decode(decoder, [[sentence] for sentence in sentences], limits)
