"""Shuffles are Python's own to the bit: batches of runs begun before, and of those resumed, rest on them."""

import random

import numpy as np
import pytest

from dragoman_training.data.shuffle import MIN_FOR_ARRAYS, Shuffler


@pytest.mark.parametrize(
    "length", [0, 1, 2, 3, 1000, MIN_FOR_ARRAYS, MIN_FOR_ARRAYS + 1, 8191, 8192, 65_537, 300_000]
)
@pytest.mark.parametrize("seed", [0, 1, 1_000_003, 2**64 + 5])
def test_numbers_come_in_the_order_that_python_shuffles_them_to(length: int, seed: int) -> None:
    expected, generator = list(range(length)), random.Random(seed)
    generator.shuffle(expected)
    numbers = np.arange(length, dtype=np.uint32)
    shuffler = Shuffler(seed)
    shuffler.shuffle(numbers)
    assert numbers.tolist() == expected
    # The next shuffle goes on with the same draws.
    expected_next = list(range(257))
    generator.shuffle(expected_next)
    following = np.arange(257, dtype=np.uint32)
    shuffler.shuffle(following)
    assert following.tolist() == expected_next


def test_the_order_is_that_of_runs_begun_before() -> None:
    """A golden order: a later version of Python may shuffle otherwise, and resumed runs may not."""
    numbers = np.arange(10, dtype=np.uint32)
    Shuffler(1).shuffle(numbers)
    assert numbers.tolist() == [6, 8, 9, 7, 5, 3, 0, 4, 1, 2]
