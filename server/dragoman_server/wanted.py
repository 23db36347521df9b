"""Whether work is still wanted, which a thread must ask itself: nobody can end it from outside."""

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from dragoman_server.errors import UnwantedError

T = TypeVar("T")


class Wanted:
    """Says whether the work of one call is still wanted. Threads may share it."""

    def __init__(self, deadline: float | None = None, caller: str = "") -> None:
        """`deadline`: in seconds of `time.monotonic`; None for none. `caller`: who wants it, as callers take
        turns at threads and engines."""
        self.deadline = deadline
        self.caller = caller
        self._is_dropped = False

    def drop(self) -> None:
        """The work is not wanted any more: the call has ended, its caller went away, or the server stops."""
        self._is_dropped = True

    def check(self) -> None:
        """Raises UnwantedError once the work is dropped or the deadline has passed; costs next to nothing."""
        if self._is_dropped or (self.deadline is not None and time.monotonic() >= self.deadline):
            raise UnwantedError

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """The items, with a check before each. Raises UnwantedError."""
        for item in items:
            self.check()
            yield item
