"""Whether calls are let in: not while the models load, not once the server drains, and so many at a time.

Belongs to the event loop's thread.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman_server.errors import NotServingError, TooManyCallsError
from dragoman_server.occupancy import Occupancy


class Gate:
    """Counts the calls that are in, and closes for good."""

    def __init__(self, max_calls: int) -> None:
        self._max_calls = max_calls
        self._open = False
        self._calls = Occupancy()
        self.answers = Occupancy()
        """Calls whose last message is not out yet."""
        self.draining = asyncio.Event()
        """Set once no more work is taken."""

    def open(self) -> None:
        """Lets calls in from now on."""
        self._open = True

    async def drain(self, timeout_seconds: float) -> bool:
        """Lets no more calls in and waits until those inside are answered; whether all were in time."""
        self.draining.set()
        try:
            await asyncio.wait_for(self.answers.wait_until_empty(), timeout_seconds)
        except TimeoutError:
            return False
        return True

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Around a call. Raises NotServingError or TooManyCallsError where it is not let in."""
        if self.draining.is_set():
            raise NotServingError("draining")
        if not self._open:
            raise NotServingError("loading")
        if self._calls.num_inside >= self._max_calls:
            raise TooManyCallsError(self._max_calls)
        with self._calls.inside():
            yield
