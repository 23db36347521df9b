"""Tensors of a running batch against what concatenating and gathering give."""

import numpy as np
import pytest

from dragoman_server.engine.onnx.tensors import Memory, Moves, align, join_rows


def sentences(*values: int, positions: int) -> np.ndarray:
    """[S, T, 2], all of a sentence's numbers its value."""
    return np.array(values, np.float32)[:, None, None] * np.ones((1, positions, 2), np.float32)


def regroup(memory: Memory, origin: np.ndarray, joined: list[np.ndarray], source_positions: int) -> None:
    num_before = 0 if memory._buffer is None else len(memory.array)
    memory.regroup(Moves(origin, num_before, [len(array) for array in joined]), joined, source_positions)


def test_newcomers_are_padded_with_zeros() -> None:
    memory = Memory(padded_axis=1)
    regroup(memory, np.arange(3), [sentences(1, 2, positions=3), sentences(3, positions=5)], 8)
    assert memory.array.shape == (3, 8, 2)
    assert memory.array[:, :, 0].tolist() == [[1] * 3 + [0] * 5, [2] * 3 + [0] * 5, [3] * 5 + [0] * 3]


def test_who_leaves_is_overwritten_and_leaves_no_trace() -> None:
    memory = Memory(padded_axis=1)
    regroup(memory, np.arange(3), [sentences(1, 2, 3, positions=8)], 8)
    buffer = memory.array
    regroup(memory, np.array([0, 3, 2]), [sentences(4, positions=2)], 8)
    assert memory.array[:, :, 0].tolist() == [[1] * 8, [4] * 2 + [0] * 6, [3] * 8]
    assert np.shares_memory(memory.array, buffer)


def test_the_last_one_moves_into_a_gap_in_place() -> None:
    memory = Memory(padded_axis=1)
    regroup(memory, np.arange(3), [sentences(1, 2, 3, positions=4)], 8)
    buffer = memory.array
    regroup(memory, np.array([2, 1]), [], 8)
    assert memory.array[:, 0, 0].tolist() == [3, 2]
    assert np.shares_memory(memory.array, buffer)


@pytest.mark.parametrize("source_positions", [16, 4])
def test_positions_are_added_and_trimmed(source_positions: int) -> None:
    memory = Memory(padded_axis=1)
    regroup(memory, np.arange(2), [sentences(1, 2, positions=4)], 8)
    regroup(memory, np.array([1]), [], source_positions)
    assert memory.array[:, :, 0].tolist() == [[2] * 4 + [0] * (source_positions - 4)]


def test_the_array_is_contiguous_so_that_it_can_be_handed_over_uncopied() -> None:
    memory = Memory(padded_axis=1)
    regroup(memory, np.arange(5), [sentences(1, 2, 3, 4, 5, positions=4)], 8)
    regroup(memory, np.array([4, 1]), [], 8)
    assert memory.array.flags.c_contiguous


def test_a_tensor_without_positions_keeps_its_shape() -> None:
    memory = Memory(padded_axis=None)
    regroup(memory, np.arange(2), [np.array([[1], [2]])], 8)
    regroup(memory, np.array([2, 1, 3]), [np.array([[3], [4]])], 16)
    assert memory.array.tolist() == [[3], [2], [4]]


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


def test_state_rows_of_newcomers_follow() -> None:
    rows = join_rows(np.array([[1.0], [2.0]]), [np.array([[3.0]]), np.array([[4.0]])], None, 5)
    assert rows.tolist() == [[1], [2], [3], [4]]


def test_a_state_that_grows_is_padded_on_the_left() -> None:
    running = np.array([[1.0, 2.0, 3.0]])
    assert join_rows(running, [np.zeros((1, 0))], 1, 3).tolist() == [[1, 2, 3], [0, 0, 0]]


def test_a_state_that_grows_is_trimmed_to_its_oldest_row() -> None:
    running = np.array([[1.0, 2.0, 3.0]])
    assert join_rows(running, [np.array([[9.0]])], 1, 1).tolist() == [[2, 3], [0, 9]]
    assert join_rows(running, [np.zeros((1, 0))], 1, 0).shape == (2, 0)


def test_a_past_may_begin_at_its_first_position_and_be_padded_behind() -> None:
    running = np.array([[1.0, 2, 0], [1, 2, 3]])
    joined = join_rows(running, [np.zeros((1, 0))], 1, 4, padded_behind=True)
    assert joined.tolist() == [[1, 2, 0, 0], [1, 2, 3, 0], [0, 0, 0, 0]]
    assert align(running[:1], 1, 2, padded_behind=True).tolist() == [[1, 2]]
