"""Tensors of a running batch against what concatenating and gathering give."""

import numpy as np

from dragoman_server.engine.onnx.tensors import Memory, Moves


def regroup(memory: Memory, origin: np.ndarray, joined: list[np.ndarray], source_positions: int) -> None:
    num_before = 0 if memory._buffer is None else len(memory.array)
    memory.regroup(Moves(origin, num_before, [len(array) for array in joined]), joined, source_positions)


def test_random_regrouping_equals_concatenating_and_gathering() -> None:
    random = np.random.default_rng(0)
    memory, expected, serial = Memory(padded_axis=2), np.zeros((0, 2, 0), np.float32), 0
    for _ in range(60):
        groups = [
            random.random((random.integers(1, 4), 2, random.integers(1, 9))).astype(np.float32)
            for _ in range(random.integers(0 if len(expected) else 1, 3))
        ]
        num_before = len(expected)
        present = [p for p in range(num_before) if random.random() < 0.7]
        present += range(num_before, num_before + sum(map(len, groups)))
        if not present:
            continue
        size = len(present)
        rest = iter([p for p in present if p >= min(size, num_before)])
        origin = np.array([p if p in present and p < num_before else next(rest) for p in range(size)])
        positions = int(random.choice([8, 16]))
        padded = [np.pad(part, ((0, 0), (0, 0), (0, 16 - part.shape[2]))) for part in (expected, *groups)]
        expected = np.concatenate(padded)[origin][:, :, :positions]
        regroup(memory, origin, groups, positions)
        np.testing.assert_array_equal(memory.array, expected)
        serial += 1
    assert serial > 40
