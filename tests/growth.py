"""Whether work takes time in proportion to its size, by the time that the process itself computes."""

import gc
import time
from collections.abc import Callable

LEAST_SECONDS = 0.02
"""Less is too little to be timed."""
MOST_RATIO = 2.6
"""Twice the work may take this many times as long; what takes the square of it takes four times."""


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Calls the work at a size that takes long enough, from `size` on, and at twice that."""

    def seconds(at: int) -> float:
        # A collection looks at all objects of all tests.
        gc.disable()
        try:
            before = time.process_time()
            work(at)
            return time.process_time() - before
        finally:
            gc.enable()

    while (once := seconds(size)) < LEAST_SECONDS:
        size *= 2
    twice = seconds(2 * size)
    for _ in range(4):
        if twice <= MOST_RATIO * once:
            return
        once, twice = min(once, seconds(size)), min(twice, seconds(2 * size))
    raise AssertionError(f"{once:.3f} s at {size}, {twice:.3f} s at {2 * size}")
