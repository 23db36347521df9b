"""Rows that share a step of int8, found on samples: where it costs little, with nothing between products."""

import numpy as np
import pytest

from dragoman_export.int8.calibration import shared_step

NORMAL = np.random.default_rng(1).normal(size=(40, 64)).astype(np.float32)


@pytest.mark.parametrize(
    "rows",
    [
        NORMAL * np.where(np.arange(40) == 7, 100, 1)[:, None].astype(np.float32),
        NORMAL * 10.0 ** np.linspace(-3, 3, 40)[:, None].astype(np.float32),
        np.zeros((40, 64), np.float32),
    ],
    ids=["one is far larger", "of all sizes", "nothing"],
)
def test_rows_keep_steps_of_their_own_where_a_common_one_would_lose_much(rows: np.ndarray) -> None:
    assert shared_step(rows) is None
