"""Whose candidates stand where in a running batch; the graph is a fake that returns ids times ten."""

from collections.abc import Mapping

import numpy as np
import pytest
from dragoman_bundle import Shortlist

from dragoman_server.engine.onnx.candidates import CANDIDATE, BatchCandidates, CandidateChooser, Offer
from dragoman_server.engine.onnx.tensors import Moves
from dragoman_server.engine.scheduling.padding import padded_candidates

AXES = {CANDIDATE: 1, "memory.weight": 2}


def gather(candidates_SC: np.ndarray) -> Mapping[str, np.ndarray]:
    candidate_SC = np.maximum(candidates_SC, 0)
    return {CANDIDATE: candidate_SC, "memory.weight": np.stack([candidate_SC * 10, -candidate_SC], axis=1)}


def make_chooser(num_always: int = 2) -> CandidateChooser:
    """Source token t brings target token 200 + t, and every sentence has the first ones."""
    shortlist = Shortlist(
        first_V=np.arange(101, dtype=np.uint32),
        target_N=np.arange(200, 300, dtype=np.uint16),
        always=np.arange(num_always, dtype=np.uint16),
        target_vocabulary=400,
    )
    return CandidateChooser(shortlist, gather)


def own(batch: BatchCandidates, s: int, count: int) -> list[int]:
    weight_2C = batch.arrays["memory.weight"][s, :, :count]
    assert (weight_2C[0] == -10 * weight_2C[1]).all()
    assert (batch.arrays[CANDIDATE][s, :count] == -weight_2C[1]).all()
    return batch.arrays[CANDIDATE][s, :count].tolist()


def regroup(
    batch: BatchCandidates, origin_S: np.ndarray, joined: list[Offer], *, num_before: int = 0
) -> None:
    batch.regroup(Moves(origin_S, num_before, [len(each.num_candidates_S) for each in joined]), joined)


@pytest.mark.parametrize(("num_candidates", "width"), [(1, 128), (128, 128), (129, 192), (192, 192)])
def test_widths_are_few(num_candidates: int, width: int) -> None:
    assert padded_candidates(num_candidates) == width


def test_sentences_keep_their_candidates_when_others_come_and_go() -> None:
    chooser = make_chooser()
    batch = BatchCandidates(chooser, AXES)
    regroup(batch, np.arange(3), [chooser.choose([[5], [6, 7]]), chooser.choose([[8]])])
    assert [own(batch, 0, 3), own(batch, 1, 4), own(batch, 2, 3)] == [
        [0, 1, 205],
        [0, 1, 206, 207],
        [0, 1, 208],
    ]
    regroup(batch, np.array([3, 1]), [chooser.choose([list(range(90, 100))])], num_before=3)
    assert [own(batch, 0, 12), own(batch, 1, 4)] == [[0, 1, *range(290, 300)], [0, 1, 206, 207]]
    assert not batch.arrays[CANDIDATE][1, 4:].any()


def test_batch_grows_and_shrinks_with_its_sentences() -> None:
    chooser = make_chooser(num_always=100)
    batch = BatchCandidates(chooser, AXES)
    regroup(batch, np.arange(2), [chooser.choose([[1], list(range(100))])])
    assert batch.arrays["memory.weight"].shape == (2, 2, 256)
    regroup(batch, np.array([0]), [], num_before=2)
    assert batch.arrays["memory.weight"].shape == (1, 2, 128)
    assert own(batch, 0, 101) == [*range(100), 201]


def test_token_that_is_no_candidate_becomes_one_of_its_sentence_alone() -> None:
    chooser = make_chooser()
    batch = BatchCandidates(chooser, AXES)
    regroup(batch, np.arange(2), [chooser.choose([[5], [6]])])
    place_SK, has_changed = batch.find(np.array([[205, 0], [301, 0]]))
    assert place_SK.tolist() == [[2, 0], [3, 0]]
    assert has_changed
    assert [own(batch, 0, 3), own(batch, 1, 4)] == [[0, 1, 205], [0, 1, 206, 301]]
    place_SK, has_changed = batch.find(np.array([[0, 0], [301, 206]]))
    assert place_SK.tolist() == [[0, 0], [3, 2]]
    assert not has_changed


def test_full_batch_grows_for_a_token() -> None:
    chooser = make_chooser(num_always=127)
    batch = BatchCandidates(chooser, AXES)
    regroup(batch, np.arange(2), [chooser.choose([[5], [5]])])
    assert batch.arrays[CANDIDATE].shape == (2, 128)
    place_SK, _ = batch.find(np.array([[0], [399]]))
    assert place_SK.tolist() == [[0], [128]]
    assert batch.arrays[CANDIDATE].shape == (2, 192)
    assert [own(batch, 0, 128), own(batch, 1, 129)] == [[*range(127), 205], [*range(127), 205, 399]]
