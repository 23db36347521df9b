"""Whether calls are let in: not while the models load, not once the server drains, and so many at a time.

Belongs to the event loop's thread.
"""

import asyncio

from dragoman_server.errors import NotServingError, TooManyCallsError
from dragoman_server.models.occupancy import Occupancy


class Gate:
    """Counts the calls that are in, and closes for good."""

    def __init__(self, max_calls: int) -> None:
        self._max_calls = max_calls
        self._open = False
        self.answers = Occupancy()
        """Calls that were admitted and whose last message is not out yet."""
        self.draining = asyncio.Event()
        """Set once no more work is taken."""

    def open(self) -> None:
        """Lets calls in from now on."""
        self._open = True

    async def drain(self, timeout_seconds: float) -> bool:
        """Lets no more calls in and waits until those inside are answered; whether all were in time."""
        self.draining.set()
        try:
            async with asyncio.timeout(timeout_seconds):
                await self.answers.wait_until_empty()
        except TimeoutError:
            return False
        return True

    def admit(self) -> None:
        """A call comes in, which must `answers.leave`. Raises NotServingError or TooManyCallsError."""
        if self.draining.is_set():
            raise NotServingError("draining")
        if not self._open:
            raise NotServingError("loading")
        if self.answers.num_inside >= self._max_calls:
            raise TooManyCallsError(self._max_calls)
        self.answers.enter()
