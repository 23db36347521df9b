"""Counts the users of something, so that it is not taken away while there are any.

Belongs to the event loop's thread.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Occupancy:
    """How many are inside, and a way to wait until nobody is."""

    def __init__(self) -> None:
        self.num_inside = 0
        self._empty = asyncio.Event()
        self._empty.set()

    def enter(self) -> None:
        """One more is inside, who must `leave`."""
        self.num_inside += 1
        self._empty.clear()

    def leave(self) -> None:
        """One less is."""
        self.num_inside -= 1
        if self.num_inside == 0:
            self._empty.set()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Counts one while it is used."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    async def wait_until_empty(self) -> None:
        """Returns once nobody is inside."""
        await self._empty.wait()
