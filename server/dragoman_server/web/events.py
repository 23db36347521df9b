"""Server-sent events (the HTML standard, section 9.2): an answer that comes in parts."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

WriteEvent = Callable[[str, str], Awaitable[None]]
"""Sends one: its kind, and its data without a line end."""
LAST_EVENT_SECONDS = 10.0
"""How long the last event may take to be read before TimeoutError is raised."""


class EventStream(Response):
    """Sends what `produce` writes, as it comes, within limits that are that one's own."""

    media_type = "text/event-stream"

    def __init__(
        self, produce: Callable[[WriteEvent], Awaitable[None]], describe: Callable[[Exception], str]
    ) -> None:
        """An error that `produce` raises before it has written is raised; a later one becomes an event
        "error"."""
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        # It is not known yet.
        del self.headers["content-length"]
        self._produce = produce
        self._describe = describe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_begun = False

        async def begin() -> None:
            nonlocal is_begun
            if not is_begun:
                is_begun = True
                await send(
                    {
                        "type": "http.response.start",
                        "status": self.status_code,
                        "headers": self.raw_headers,
                    }
                )

        async def write(kind: str, data: str) -> None:
            await begin()
            event = f"event: {kind}\ndata: {data}\n\n".encode()
            await send({"type": "http.response.body", "body": event, "more_body": True})

        try:
            await self._produce(write)
        except Exception as error:
            if not is_begun:
                raise
            last = ("error", self._describe(error))
        else:
            last = ("end", "{}")
        # Where nobody reads, that is why it ended.
        async with asyncio.timeout(LAST_EVENT_SECONDS):
            await write(*last)
            await send({"type": "http.response.body", "body": b""})
