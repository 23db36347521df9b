"""The engine decodes every family, whatever its state holds, as PyTorch does and as each sentence alone."""

import numpy as np
import pytest
from dragoman_bundle.bundle import Bundle
from tests.engine.exported import (
    check_it_decodes_what_pytorch_does,
    check_who_joins_decodes_as_alone,
    export_family,
    open_plain,
)
from tests.export.toy_checkpoint import CONFIGS

from dragoman_server.engine.decoder import StepInput
from dragoman_server.engine.onnx.batch import OnnxBatch
from dragoman_server.engine.onnx.decoder import OnnxDecoder

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
    check_who_joins_decodes_as_alone(open_plain(exported, precision), beam_size, max_rows, tolerance)


def open_batch(decoder: OnnxDecoder, num_sentences: int) -> OnnxBatch:
    batch = decoder.open_batch(1)
    batch.regroup(
        np.arange(num_sentences), [decoder.encode([[4 + n, 3] for n in range(num_sentences)], 1)], 8
    )
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
    (grown,) = {
        batch._state[name].shape[axis] for name, axis in batch._growth_axis.items() if axis is not None
    }
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
    check_it_decodes_what_pytorch_does(exported)
