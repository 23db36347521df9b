"""The end of a step, run by onnxruntime, finds what a search of everything finds, whatever is barred."""

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from dragoman_export.graphs.builder import GraphBuilder
from dragoman_export.graphs.step_end import StepInputs, block_size, end_step, searchable_size, with_reach
from dragoman_export.parity.onnx_stepper import open_session, run_session
from dragoman_export.reference.imported import BIAS, OUTPUT

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
def test_the_best_are_those_of_all_scores(
    beam: int, vocabulary: int, barred: tuple[int, ...], tmp_path: Path
) -> None:
    random = np.random.default_rng(beam)
    weights = {
        OUTPUT: random.normal(size=(vocabulary, WIDTH)).astype(np.float32),
        BIAS: random.normal(size=vocabulary).astype(np.float32),
    }
    # What is barred would be the best of all.
    weights[BIAS][list(barred)] += 50
    build = GraphBuilder("end", with_reach(weights, (3,), barred), ir.DataType.FLOAT)
    features_RD = build.input("features", ["K*S", WIDTH], ir.DataType.FLOAT)
    end_step(build, features_RD, StepInputs.of(build))
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

    logits = features @ weights[OUTPUT].T + weights[BIAS]
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
