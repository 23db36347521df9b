"""Whether work takes time in proportion to its size, by the processor's time, and how much memory it has."""

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MIN_SECONDS = 0.02
"""Less is too little to be timed."""
MAX_RATIO = 2.6
"""Twice the work may take this many times as long; what takes the square of it takes four times."""
NUM_DOUBLINGS = 2
"""Tries, as what is linear may take one step up where a buffer is full; a square never passes."""


def assert_linear(work: Callable[[int], object], size: int, max_size: int = 1 << 40) -> None:
    """Calls the work at sizes from `size` on until it takes long enough, and at twice that size.

    Work that takes too little time to be timed at `max_size` is to take as little time for twice as much.
    """

    def seconds(at: int) -> float:
        # A collection looks at all objects of all tests.
        gc.disable()
        try:
            before = time.process_time()
            work(at)
            return time.process_time() - before
        finally:
            gc.enable()

    work(size)
    while (once := seconds(size)) < MIN_SECONDS and size < max_size:
        size = min(2 * size, max_size)
    if seconds(2 * size) <= MAX_RATIO * max(once, MIN_SECONDS):
        return
    told = []
    for _ in range(NUM_DOUBLINGS):
        once, twice = (min(seconds(at) for _ in range(3)) for at in (size, 2 * size))
        if twice <= MAX_RATIO * max(once, MIN_SECONDS):
            return
        told.append(f"{once:.3f} s at {size}, {twice:.3f} s at {2 * size}")
        size = min(2 * size, max_size)
    raise AssertionError("; ".join(told))


@contextmanager
def memory_below(num_bytes: int) -> Iterator[None]:
    """Asserts that what Python has at a time in the block, beside what it had, is less than that."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < num_bytes
    finally:
        tracemalloc.stop()
