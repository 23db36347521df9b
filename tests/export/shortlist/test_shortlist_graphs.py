"""The graphs of a shortlist do what the others do, over a sentence's candidates and nothing else."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.export.toy_checkpoint import change_weight, open_stepper, random_sources

from dragoman_export.bundle_files import write_graphs
from dragoman_export.graphs.builder import Graphs
from dragoman_export.parity.gate import ParityGate
from dragoman_export.parity.loss import ParityError
from dragoman_export.parity.onnx_stepper import ShortlistStepper
from dragoman_export.shortlist.graphs import ShortlistGraphs, make_shortlist_graphs
from dragoman_training.checkpoint import Checkpoint

BEAM = 4


def open_shortlist_stepper(folder: Path) -> ShortlistStepper:
    return ShortlistStepper(folder, vocabulary_size=40, source_pad_id=0, bos_id=2, eos_id=3)


def first_step(stepper: ShortlistStepper, candidates: list[np.ndarray]) -> dict[str, np.ndarray]:
    """The step from the beginning of as many sentences as there are lists of candidates."""
    sources = random_sources([3, 9, 1, 17][: len(candidates)], 40, eos_id=3)
    context = stepper.encode(sources, candidates)
    shape = (len(sources), BEAM)
    parent_SK = np.repeat(np.arange(len(sources))[:, None], BEAM, axis=1)
    score_SK = np.zeros(shape, np.float32)
    score_SK[:, 1:] = -np.inf
    token_SK, forced_SK = np.full(shape, 2), np.full(shape, 3)
    return stepper.run_step(context, token_SK, parent_SK, score_SK, forced_SK=forced_SK)[0]


@pytest.mark.parametrize("precision", ["fp32", "int8", "fp16"])
def test_sound_graphs_pass_the_gate(
    luong_gate: ParityGate, luong_graphs: dict[str, Graphs], tmp_path: Path, precision: str
) -> None:
    graphs = luong_graphs[precision]
    write_graphs(graphs, tmp_path / precision, make_shortlist_graphs(graphs))
    parity = luong_gate.check_shortlist(open_shortlist_stepper(tmp_path / precision), precision)
    if precision == "fp32":
        assert parity.num_identical == parity.num_sentences
        assert parity.max_error < 1e-4


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_whole_vocabulary_gives_what_the_plain_step_gives(
    checkpoint: Checkpoint, graphs: dict[str, Graphs], tmp_path: Path, precision: str
) -> None:
    vocabulary = checkpoint.target_tokenizer.vocabulary_size
    write_graphs(graphs[precision], tmp_path / "x", make_shortlist_graphs(graphs[precision]))
    plain, stepper = open_stepper(tmp_path / "x", checkpoint), open_shortlist_stepper(tmp_path / "x")
    sources = random_sources([2, 7, 20], vocabulary, eos_id=3)
    generator = np.random.default_rng(1)
    forced_SK = generator.integers(0, vocabulary, (3, BEAM))
    token_SK = generator.integers(4, vocabulary, (3, BEAM))
    parent_SK = np.repeat(np.arange(3)[:, None], BEAM, axis=1)
    arguments = (token_SK, parent_SK, generator.normal(size=(3, BEAM)).astype(np.float32))
    expected, _ = plain.run_step(plain.encode(sources), *arguments, forced_SK=forced_SK)
    found, _ = stepper.run_step(stepper.encode(sources), *arguments, forced_SK=forced_SK)
    assert found.keys() == expected.keys()
    np.testing.assert_array_equal(found["top_index"], expected["top_index"])
    for name in ("top_score", "forced_score", "attention"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


@pytest.mark.parametrize("precision", ["fp32", "int8", "fp16"])
def test_sentence_is_not_offered_what_its_neighbours_bring(
    luong_graphs: dict[str, Graphs], tmp_path: Path, precision: str
) -> None:
    graphs = luong_graphs[precision]
    write_graphs(graphs, tmp_path / precision, make_shortlist_graphs(graphs))
    stepper = open_shortlist_stepper(tmp_path / precision)
    candidates = [np.array([3, 5, 9]), np.arange(3, 30), np.array([3]), np.array([3, 38, 39])]
    outputs = first_step(stepper, candidates)
    for s, own in enumerate(candidates):
        is_real = outputs["top_score"][s] > -np.inf
        assert is_real.sum() == min(2 * BEAM, len(own))
        # Of the first row, the only one in use, each candidate once.
        assert set(outputs["top_index"][s][is_real].tolist()) <= set(own.tolist())
        if len(own) < 2 * BEAM:
            assert np.exp(outputs["top_score"][s][is_real]).sum() == pytest.approx(1, abs=1e-5)
        (alone,) = first_step(stepper, [own])["top_score"] if s == 0 else [outputs["top_score"][s]]
        np.testing.assert_array_equal(outputs["top_score"][s], alone)


def add_one_to_a_bias(array: np.ndarray) -> None:
    array[10] += 1


def shift_by_a_token(array: np.ndarray) -> None:
    array[:] = np.roll(array, 1, axis=0)


@pytest.mark.parametrize(
    ("precision", "name", "change"),
    [
        ("fp32", "shortlist.bias", add_one_to_a_bias),
        ("fp32", "model.output.embedding.weight", shift_by_a_token),
        ("int8", "model.output.embedding.weight.rows.codes", shift_by_a_token),
    ],
)
def test_one_wrong_constant_is_refused(
    luong_gate: ParityGate,
    luong_graphs: dict[str, Graphs],
    tmp_path: Path,
    precision: str,
    name: str,
    change: Callable[[np.ndarray], None],
) -> None:
    graphs = luong_graphs[precision]
    sound = make_shortlist_graphs(graphs)
    shortlist = sound.shortlist.clone()
    change_weight(shortlist, name, change)
    write_graphs(graphs, tmp_path / precision, ShortlistGraphs(shortlist, sound.decoder_step))
    with pytest.raises(ParityError, match=precision):
        luong_gate.check_shortlist(open_shortlist_stepper(tmp_path / precision), precision)
