"""Parts of graphs: attention by kernels and traced, the end of a step, and exponentials against a softmax."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch

from dragoman_export.graphs.attention import attend_to_source
from dragoman_export.graphs.builder import GraphBuilder
from dragoman_export.graphs.encoder_and_step import best_continuations
from dragoman_export.graphs.step_end import StepInputs, block_size, end_step, searchable_size, with_reach
from dragoman_export.graphs.traced_attention import exponentials
from dragoman_export.parity.onnx_stepper import open_session, run_session
from dragoman_export.reference.imported import Name
from dragoman_server.engine.decoder import padded_positions

HEADS, HEAD_WIDTH = 16, 64


@pytest.mark.parametrize("queries", [1, 4, 5])
def test_padding_as_the_engine_pads_changes_no_bit_of_a_context(queries: int, tmp_path: Path) -> None:
    build = GraphBuilder("attention", {}, ir.DataType.FLOAT)
    width, memory = HEADS * HEAD_WIDTH, ["S", HEADS, "T", HEAD_WIDTH]
    values = [
        build.input(name, shape, ir.DataType.FLOAT)
        for name, shape in (("queries", ["S", "Q", width]), ("keys", memory), ("values", memory))
    ]
    is_inside = build.input("is_inside", ["S", "T"], ir.DataType.INT32)
    build.output("context", attend_to_source(build, *values, is_inside, HEADS), ["S", "Q", width])
    ir.save(build.model(), tmp_path / "attention.onnx")
    session, random = open_session(tmp_path / "attention.onnx"), np.random.default_rng(4)
    for length in range(1, 40):
        query = random.normal(size=(1, queries, width)).astype(np.float32)
        past = random.normal(size=(2, 1, HEADS, length, HEAD_WIDTH)).astype(np.float32)

        def attend(positions: int, query: np.ndarray = query, past: np.ndarray = past) -> np.ndarray:
            length = past.shape[3]
            keys, values = np.pad(past, [(0, 0)] * 3 + [(0, positions - length), (0, 0)])
            is_inside = (np.arange(positions) < length).astype(np.int32)[None]
            given = {"queries": query, "keys": keys, "values": values, "is_inside": is_inside}
            return run_session(session, given)["context"]

        alone = attend(padded_positions(length))
        # A row of a beam attends as it does by itself.
        for number in range(queries):
            own = slice(number, number + 1)
            found = attend(padded_positions(length), query[:, own])
            np.testing.assert_array_equal(found, alone[:, own])
        for longest in (length + 1, length + 3, 41, 65, 130):
            np.testing.assert_array_equal(attend(padded_positions(longest)), alone)


WIDTH = 16


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize(
    ("vocabulary", "barred"),
    [
        pytest.param(4000, (), id="nothing barred"),
        pytest.param(4000, (1,), id="a piece barred"),
        pytest.param(4000, (1, 70, 2000, 3999), id="pieces of four blocks barred"),
        pytest.param(40, (1, 11, 22, 33), id="one of every block barred"),
        pytest.param(31, (1,), id="a prime, in no blocks"),
    ],
)
def test_the_best_are_of_all(beam: int, vocabulary: int, barred: Sequence[int], tmp_path: Path) -> None:
    random = np.random.default_rng(beam)
    weights = {
        Name.OUTPUT: random.normal(size=(vocabulary, WIDTH)).astype(np.float32),
        Name.BIAS: random.normal(size=vocabulary).astype(np.float32),
    }
    # What is barred would be the best of all.
    weights[Name.BIAS][list(barred)] += 50
    build = GraphBuilder("end", with_reach(weights, (3,), barred), ir.DataType.FLOAT)
    end_step(build, build.input("features", ["K*S", WIDTH], ir.DataType.FLOAT), StepInputs.of(build))
    ir.save(build.model(), tmp_path / "end.onnx")
    features = random.normal(size=(3 * beam, WIDTH)).astype(np.float32)
    score_SK = -10 * random.random((3, beam)).astype(np.float32)
    score_SK[2, 1:] = -np.inf
    forced_SK = random.integers(0, vocabulary, (3, beam))
    unread = dict.fromkeys(("token", "parent"), forced_SK)
    given = {"features": features, "score": score_SK, "forced": forced_SK, **unread}
    session = open_session(tmp_path / "end.onnx")
    names = {value.name for value in session.get_inputs()}
    found = run_session(session, {name: array for name, array in given.items() if name in names})

    logits = features @ weights[Name.OUTPUT].T + weights[Name.BIAS]
    logits[:, 3] = -np.inf
    scores = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    scores[:, list(barred)] = -np.inf
    running = (scores + score_SK.reshape(-1, 1)).reshape(3, -1)
    expected = np.argsort(-running, axis=1, kind="stable")[:, : 2 * beam]
    for s in range(3):
        reached = np.isfinite(running[s, expected[s]])
        np.testing.assert_array_equal(found["top_index"][s][reached], expected[s][reached])
        np.testing.assert_allclose(
            found["top_score"][s][reached], running[s, expected[s]][reached], rtol=1e-4, atol=1e-3
        )
    forced = np.take_along_axis(scores.reshape(3, beam, -1), forced_SK[..., None], 2)[..., 0] + score_SK
    is_reached = np.isfinite(forced)
    np.testing.assert_allclose(found["forced_score"][is_reached], forced[is_reached], rtol=1e-4, atol=1e-3)
    assert (found["forced_score"][~is_reached] < -1e3).all()


@pytest.mark.parametrize("vocabulary", [31, 8001, 16_001, 32_001, 65_002, 128_113, 256_207])
def test_few_tokens_more_are_enough_for_blocks(vocabulary: int) -> None:
    size = searchable_size(vocabulary)
    assert block_size(size) is not None
    assert vocabulary <= size <= 1.01 * vocabulary + 2


@pytest.mark.parametrize("beam", [1, 4, 8])
@pytest.mark.parametrize(
    "vocabulary",
    [
        pytest.param(40, id="few blocks"),
        pytest.param(4000, id="many blocks"),
        pytest.param(31, id="a prime, in no blocks"),
    ],
)
def test_the_best_of_a_traced_search_are_those_of_all_scores(beam: int, vocabulary: int) -> None:
    torch.manual_seed(beam)
    token_score_RV = torch.randn(7 * beam, vocabulary).log_softmax(dim=-1)
    # As a vocabulary has them: tokens that are never produced.
    token_score_RV[:, :3] = -torch.inf
    score_SK = -10 * torch.rand(7, beam)
    running_SX = (token_score_RV + score_SK.reshape(-1, 1)).reshape(7, -1)
    expected_score, expected_place = running_SX.topk(2 * beam, dim=1)
    score, place = best_continuations(token_score_RV, score_SK)
    assert torch.equal(score, expected_score)
    assert torch.equal(place, expected_place)


def test_of_a_row_that_is_not_in_use_nothing_is_found() -> None:
    """At its first step a sentence has one row, in whose few blocks all of its best are."""
    token_score_RV = torch.randn(3 * 8, 40).log_softmax(dim=-1)
    score_SK = torch.full((3, 8), -torch.inf)
    score_SK[:, 0] = 0
    score, place = best_continuations(token_score_RV, score_SK)
    expected_score, expected_place = token_score_RV[::8].topk(16, dim=1)
    assert torch.equal(score, expected_score)
    assert torch.equal(place, expected_place)


MASKED = -1e4
SCORES = torch.tensor([[2.0, -1.0, MASKED, 0.5, MASKED], [-300.0, 7.0, 6.0, MASKED, MASKED]])


def test_their_shares_are_those_of_a_softmax() -> None:
    powers = exponentials(SCORES, SCORES == MASKED)

    torch.testing.assert_close(powers / powers.sum(dim=-1, keepdim=True), SCORES.softmax(dim=-1))


def test_what_is_masked_is_exactly_zero_and_nothing_else_is_below_a_normal_number() -> None:
    is_masked = SCORES == MASKED

    powers = exponentials(SCORES, is_masked)

    assert (powers[is_masked] == 0).all()
    assert (powers[~is_masked] >= torch.finfo(torch.float32).tiny).all()
