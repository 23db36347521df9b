"""Who runs on which cores: the load generator must not take the server's."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.machine import usable_cores


@dataclass(frozen=True, kw_only=True)
class Cores:
    """The cores of the server and of the load generator."""

    server: tuple[int, ...]
    generator: tuple[int, ...]

    @property
    def are_apart(self) -> bool:
        """Whether each has its own."""
        return not set(self.server) & set(self.generator)


def share_out(num_server_threads: int) -> Cores:
    """As many cores for the server as it has threads and the others for the generator.

    Both get all of them where none would be left for the generator.
    """
    cores = tuple(usable_cores())
    if hasattr(os, "sched_setaffinity") and len(cores) > num_server_threads:
        return Cores(server=cores[:num_server_threads], generator=cores[num_server_threads:])
    return Cores(server=cores, generator=cores)


@contextmanager
def pinned_to(cores: tuple[int, ...]) -> Iterator[None]:
    """Keeps this thread, and all threads and processes that it starts meanwhile, on these cores."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
