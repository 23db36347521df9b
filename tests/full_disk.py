"""A disk that is full, as who writes a file sees it."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def disk_with(num_bytes: int) -> Iterator[None]:
    """No file can be larger, pytest's own among them: it stands around the work alone."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
