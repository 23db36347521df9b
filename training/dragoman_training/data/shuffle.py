"""Shuffles of numbers as `random.Random(seed).shuffle` gives them, at the speed of arrays.

Owns the draws and the swaps. A run that was begun with Python's own shuffle has the same batches here.
"""

import random

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

MIN_FOR_ARRAYS = 4096
"""Below so many numbers steps go one by one: too many of a block would touch the same places."""
MAX_BLOCK = 1 << 16
"""Steps taken together, at most; never more than one in `BLOCK_SHARE` numbers that are left."""
BLOCK_SHARE = 256


class Shuffler:
    """Shuffles one array after the other, each with the draws that follow the last one's."""

    def __init__(self, seed: int) -> None:
        *key, position = random.Random(seed).getstate()[1]
        self._generator = np.random.MT19937()
        self._generator.state = {
            "bit_generator": "MT19937",
            "state": {"key": np.array(key, np.uint32), "pos": position},
        }
        self._drawn: Words = np.empty(0, np.uint32)

    def shuffle(self, values_N: NDArray[np.uint32]) -> None:
        """Shuffles in place (Fisher and Yates, from the last place down), 2^32 values at most."""
        last = len(values_N) - 1
        is_twice_N = np.zeros(len(values_N), bool)
        while last >= MIN_FOR_ARRAYS:
            # All draws of a block are of one number of bits.
            of_these_bits = last + 2 - (1 << ((last + 1).bit_length() - 1))
            count = min(MAX_BLOCK, (last + 1) // BLOCK_SHARE, of_these_bits)
            _swap(values_N, last, self._draw_below(last + 1, count), is_twice_N)
            last -= count
        for index in range(last, 0, -1):
            size = index + 1
            shift = 32 - size.bit_length()
            while (other := int(self._take(1)[0]) >> shift) >= size:
                pass
            values_N[index], values_N[other] = values_N[other], values_N[index]

    def _draw_below(self, size: int, count: int) -> NDArray[np.int64]:
        """Draws as many numbers, the first below `size`, the next below `size - 1`, and so on.

        Each is the highest bits of a word, and is drawn again where it is too large.
        """
        shift = np.uint32(32 - size.bit_length())
        found: list[NDArray[np.int64]] = []
        while count:
            words = self._take(count)
            numbers = (words >> shift).astype(np.int64)
            # How many were taken before decides what is too large: from left to right, until it settles.
            taken = numbers < size
            while True:
                before: NDArray[np.int64] = np.cumsum(taken) - taken
                settled = numbers < size - before
                if np.array_equal(settled, taken):
                    break
                taken = settled
            found.append(numbers[taken])
            size -= len(found[-1])
            count -= len(found[-1])
        return np.concatenate(found)

    def _take(self, count: int) -> Words:
        """The next words of the generator."""
        if len(self._drawn) < count:
            more = self._generator.random_raw(max(count, 1024)).astype(np.uint32)
            self._drawn = np.concatenate([self._drawn, more])
        words, self._drawn = self._drawn[:count], self._drawn[count:]
        return words


def _swap(
    values_N: NDArray[np.uint32], last: int, others: NDArray[np.int64], is_twice_N: NDArray[np.bool_]
) -> None:
    """Swaps `last` with the first of the others, the place before it with the second, and so on.

    `is_twice_N` is all False before and after.
    """
    places = np.arange(last, last - len(others), -1)
    ordered = np.sort(others)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    within = others > last - len(others)
    is_twice_N[twice] = True
    in_turn = within | is_twice_N[others]
    is_twice_N[twice] = False
    in_turn[last - others[within]] = True
    # What touches places that no other step of the block touches may be done at once.
    at_once, free = ~in_turn, others[~in_turn]
    values_N[places[at_once]], values_N[free] = values_N[free], values_N[places[at_once]]
    for index, other in zip(places[in_turn].tolist(), others[in_turn].tolist(), strict=True):
        values_N[index], values_N[other] = values_N[other], values_N[index]
