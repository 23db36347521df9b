"""Whether work takes time in proportion to its size, by the time that the process itself computes."""

import gc
import time
from collections.abc import Callable

LEAST_SECONDS = 0.02
"""Less is too little to be timed."""
MAX_RATIO = 2.6
"""Twice the work may take this many times as long; what takes the square of it takes four times."""
NUM_DOUBLINGS = 2
"""Tries, as what is linear may take one step up where a buffer is full; a square never passes."""


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Calls the work at sizes from `size` on, and at twice these, once it takes long enough."""

    def seconds(at: int) -> float:
        # A collection looks at all objects of all tests.
        gc.disable()
        try:
            before = time.process_time()
            work(at)
            return time.process_time() - before
        finally:
            gc.enable()

    while seconds(size) < LEAST_SECONDS:
        size *= 2
    told = []
    for _ in range(NUM_DOUBLINGS):
        for num_tries in (1, 3):
            once, twice = (min(seconds(at) for _ in range(num_tries)) for at in (size, 2 * size))
            if twice <= MAX_RATIO * once:
                return
        told.append(f"{once:.3f} s at {size}, {twice:.3f} s at {2 * size}")
        size *= 2
    raise AssertionError("; ".join(told))
