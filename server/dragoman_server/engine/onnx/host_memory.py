"""Gives memory of the host back to the system, where its C library can."""

import ctypes
import functools
from collections.abc import Callable


def trim_memory() -> None:
    """Gives back what is free of all threads' heaps, which glibc keeps; elsewhere this does nothing."""
    if trim := _malloc_trim():
        trim(0)


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
