"""Sentences of every age in one running batch of a model whose past grows with each step."""

import numpy as np
import pytest
from dragoman_bundle.bundle import Bundle
from tests.engine.exported import (
    check_it_decodes_what_pytorch_does,
    check_who_joins_decodes_as_alone,
    export_family,
    open_plain,
)

from dragoman_server.engine.decoder import StepInput
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.host_decoder import OnnxBatch


@pytest.fixture(
    scope="module",
    params=["transformer", "lm", "ensemble", pytest.param("transformer-post", marks=pytest.mark.long)],
)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return export_family(request.param, tmp_path_factory)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("beam_size", [1, pytest.param(4, marks=pytest.mark.long), 5])
def test_whoever_joins_a_running_batch_decodes_to_what_it_decodes_to_alone(
    exported: Bundle, precision: str, beam_size: int
) -> None:
    # Bit for bit in int8, where a difference would grow.
    tolerance = 0 if precision == "int8" else 1e-5
    decoder = open_plain(exported, precision)
    check_who_joins_decodes_as_alone(decoder, beam_size, (4 * beam_size, 320), tolerance)


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
