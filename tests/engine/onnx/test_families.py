"""The engine decodes every family, whatever its state holds, as PyTorch does and as each sentence alone."""

import numpy as np
import pytest
from dragoman_bundle.bundle import Bundle
from dragoman_bundle.search import beam_search
from tests.engine.exported import (
    VOCABULARY,
    export_family,
    open_plain,
    random_sentences,
    step_input,
    translate,
)
from tests.engine.house import searched
from tests.export.toy_checkpoint import CONFIGS, make_members, random_sources, train_tokenizer

from dragoman_server.engine import Sentence
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.host_decoder import OnnxBatch
from dragoman_training.checkpoint import as_one
from dragoman_training.decoding.translator import TorchStepper

GROWING = ("transformer", "lm", "ensemble", "transformer-post")
"""Those whose past grows with each step."""
FIXED = [name for name in CONFIGS if not name.startswith(("transformer", "lm"))]
SOON = ("luong", "plain", "structured", "ssru", *GROWING[:3])
"""Those that differ most in what they remember; `tests/export` tries the graphs of the others, too."""
LONG = pytest.mark.long


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[] if name in SOON else LONG) for name in (*FIXED, *GROWING)],
)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return export_family(request.param, tmp_path_factory)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize(
    ("exported", "beam_size"),
    [
        pytest.param(name, beam_size, marks=[] if name in SOON and beam_size != 4 else LONG)
        for name in (*FIXED, *GROWING)
        for beam_size in ((1, 4, 5) if name in GROWING else (5,))
    ],
    indirect=["exported"],
)
def test_whoever_joins_a_running_batch_decodes_to_what_it_decodes_to_alone(
    exported: Bundle, precision: str, beam_size: int
) -> None:
    max_rows = (4 * beam_size, 320)
    if exported.manifest.name in GROWING:
        # Bit for bit in int8, where a difference would grow.
        tolerance = 0 if precision == "int8" else 1e-5
    else:
        tolerance, max_rows = 1e-3 if precision == "int8" else 1e-5, max_rows[:1]
    decoder, sentences = open_plain(exported, precision), random_sentences(beam_size)
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


def open_batch(decoder: OnnxDecoder, num_sentences: int) -> OnnxBatch:
    batch, sources = decoder.open_batch(1), [[4 + number, 3] for number in range(num_sentences)]
    batch.regroup(np.arange(num_sentences), [decoder.encode(sources, 1)], 8)
    return batch


def step(batch: OnnxBatch, parent_S: list[int]) -> np.ndarray:
    parent_S1 = np.array(parent_S)[:, None]
    return batch.step(step_input(np.full_like(parent_S1, 5), parent_S1)).top_score_SC


def past(batch: OnnxBatch) -> int:
    axes = {name: axis for name, axis in batch._growth_axis.items() if axis is not None}
    (grown,) = {batch._state[name].shape[axis] for name, axis in axes.items()}
    return int(grown)


@pytest.mark.parametrize("exported", GROWING[:3], indirect=True)
def test_the_past_is_as_long_as_the_oldest_who_is_there(exported: Bundle) -> None:
    decoder = open_plain(exported, "fp32")
    batch = open_batch(decoder, 1)
    for _ in range(6):
        step(batch, [0])
    # One joins, the first leaves, and so on without end.
    for _ in range(5):
        batch.regroup(np.array([0, 1]), [decoder.encode([[9, 3]], 1)], 8)
        assert past(batch) <= 6
        for _ in range(3):
            step(batch, [0, 1])
        batch.regroup(np.array([1]), [], 8)
        assert past(batch) == 3
        step(batch, [1])
        for _ in range(2):
            step(batch, [0])


def test_the_engine_decodes_what_pytorch_does(exported: Bundle) -> None:
    """In fp32, with the recipe's search."""
    members = make_members(exported.manifest.name, train_tokenizer(VOCABULARY))
    decoding = members[0].recipe.decoding
    sources = random_sources([3, 12, 25], VOCABULARY, eos_id=3)
    stepper = TorchStepper(as_one(members), source_pad_id=0, bos_id=2, eos_id=3)
    options = searched(decoding.beam_size, decoding.max_output_tokens, length_penalty=decoding.length_penalty)
    sentences = [Sentence(source=tuple(source), options=options) for source in sources]
    found = translate(open_plain(exported, "fp32"), sentences, max_rows=64)
    for one, expected in zip(found, beam_search(stepper, sources, decoding), strict=True):
        assert [h.tokens for h in one.hypotheses] == [h.tokens for h in expected]
        assert [h.score for h in one.hypotheses] == pytest.approx([h.score for h in expected], abs=1e-4)
