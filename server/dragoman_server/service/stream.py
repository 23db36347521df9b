"""A TranslateStream call: items in, results out as they complete, a bounded number of them at a time.

Owns the window, that every item read is answered once, and how long a stream may be idle: nothing comes in,
nothing is taken out, and nothing is under way. Must not know what an item's translation takes.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.errors import IdleStreamError, InvalidRequestError, NotServingError, refusal

MAX_MESSAGE_BYTES = 1 << 16
"""Most bytes of a message that holds several responses."""
MAX_MESSAGE_ITEMS = 4096
"""Most items of one message."""
MAX_ID_CHARACTERS = 1024
"""Longest id of an item. Answers that wait for their reader have it."""

Answer = Callable[[pb.TranslateStreamItem], Awaitable[pb.TranslateStreamResponse]]
Write = Callable[[pb.TranslateStreamResponse], Awaitable[None]]


class TranslationStream:
    def __init__(
        self, answer: Answer, *, write: Write, joins: bool, max_items: int, max_idle_seconds: float
    ) -> None:
        """`answer` turns an item into its response, which holds the error if there is one; `write` sends it.

        With `joins`, responses that are there at the same time go out in one message.
        """
        self._answer = answer
        self._write = write
        self._joins = joins
        self._ready: list[pb.TranslateStreamResponse] = []
        self._slots = asyncio.Semaphore(max_items)
        self._writing = asyncio.Lock()
        self._max_idle_seconds = max_idle_seconds
        self._idle_timeout = asyncio.timeout(max_idle_seconds)
        self._num_under_way = 0

    async def run(self, messages: AsyncIterator[pb.TranslateStreamRequest], draining: asyncio.Event) -> None:
        """Reads items to the end of `messages`, or until `draining` is set, and answers all that it began.

        Raises afterwards InvalidRequestError where a message was no item, NotServingError where items may be
        left unread; and IdleStreamError as soon as the stream has been idle for too long.
        """
        try:
            async with self._idle_timeout, asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(self._read(messages, tasks))
                watching = tasks.create_task(_cancel_when(draining, reading))
                reading.add_done_callback(lambda _: watching.cancel())
        except TimeoutError:
            raise IdleStreamError(self._max_idle_seconds) from None
        if reading.cancelled():
            raise NotServingError("draining")
        if error := reading.result():
            raise error

    async def _read(
        self, messages: AsyncIterator[pb.TranslateStreamRequest], tasks: asyncio.TaskGroup
    ) -> InvalidRequestError | None:
        """The fault of the last message that was read, if anything: the items before are answered."""
        await self._slots.acquire()
        try:
            async for message in messages:
                items = _items_of(message)
                if not items:
                    description = "must hold items: only the first message of a stream is a config"
                    return refusal("request", description)
                for item in items:
                    self._num_under_way += 1
                    self._moved()
                    tasks.create_task(self._respond(item))
                    # Items of one message hold up others' calls no longer than those that come one by one.
                    await asyncio.sleep(0)
                    await self._slots.acquire()
                # The next message may not come for long.
                del message, items, item
        except InvalidRequestError as error:
            return error
        return None

    async def _respond(self, item: pb.TranslateStreamItem) -> None:
        response = await self._answer(item)
        # The answer may wait for long, and an item that was refused may be large.
        del item
        self._num_under_way -= 1
        self._moved()
        self._ready.append(response)
        if self._joins:
            # Those of the same decoder step come in the same turn of the event loop.
            await asyncio.sleep(0)
        # A call takes one write at a time. Where responses are joined, who comes next writes all that is
        # ready by then; its own may have gone out before. A place is free once the caller takes its answer.
        async with self._writing:
            if self._ready:
                await self._write_ready()
        self._slots.release()

    async def _write_ready(self) -> None:
        ready = self._ready if self._joins else self._ready[:1]
        self._ready = self._ready[len(ready) :]
        for message in _messages_of(ready):
            await self._write(message)
            self._moved()

    def _moved(self) -> None:
        """Restarts the idle timeout, which is suspended while items are under way."""
        if not self._idle_timeout.expired():
            until = asyncio.get_running_loop().time() + self._max_idle_seconds
            self._idle_timeout.reschedule(None if self._num_under_way else until)


async def read_config(
    messages: AsyncIterator[pb.TranslateStreamRequest], draining: asyncio.Event, *, max_idle_seconds: float
) -> pb.TranslateStreamConfig:
    """The first message's config.

    Raises InvalidRequestError where it is none, NotServingError where `draining` is set before it comes, and
    IdleStreamError where it does not come in time.
    """
    reading = asyncio.ensure_future(anext(messages, None))
    watching = asyncio.create_task(draining.wait())
    try:
        done, _ = await asyncio.wait(
            {reading, watching}, timeout=max_idle_seconds, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        reading.cancel()
        watching.cancel()
    if not done:
        raise IdleStreamError(max_idle_seconds)
    if reading not in done:
        raise NotServingError("draining")
    first = reading.result()
    if first is None or first.WhichOneof("request") != "config":
        description = "is missing: the first message of a stream must be a config"
        raise refusal("config", description)
    return first.config


def _items_of(message: pb.TranslateStreamRequest) -> Sequence[pb.TranslateStreamItem]:
    """The items of a message that is no config; none where it has none.

    Raises InvalidRequestError for too many, and for an id that is too long.
    """
    match message.WhichOneof("request"):
        case "item":
            _check_ids([message.item], "item")
            return [message.item]
        case "items":
            items = message.items.items
            if len(items) > MAX_MESSAGE_ITEMS:
                limit = f"a message takes {MAX_MESSAGE_ITEMS}; send several messages"
                raise refusal("items", f"holds {len(items)} items, and {limit}")
            _check_ids(items, "items.items[{}]")
            return items
        case _:
            return []


def _check_ids(items: Sequence[pb.TranslateStreamItem], field: str) -> None:
    """Refuses a message with too long an id: an answer to the item alone would have the id, too."""
    for index, item in enumerate(items):
        if (length := len(item.id)) > MAX_ID_CHARACTERS:
            description = f"has {length} characters, and an id takes {MAX_ID_CHARACTERS}; shorten it"
            raise refusal(f"{field.format(index)}.id", description)


def _messages_of(
    responses: Sequence[pb.TranslateStreamResponse],
) -> Iterator[pb.TranslateStreamResponse]:
    """Messages that hold the responses, each within MAX_MESSAGE_BYTES or of one longer response."""
    start = num_bytes = 0
    for index, response in enumerate(responses):
        size = response.ByteSize()
        if index > start and num_bytes + size > MAX_MESSAGE_BYTES:
            yield _joined(responses[start:index])
            start, num_bytes = index, 0
        num_bytes += size
    if start < len(responses):
        yield _joined(responses[start:])


def _joined(responses: Sequence[pb.TranslateStreamResponse]) -> pb.TranslateStreamResponse:
    if len(responses) == 1:
        return responses[0]
    return pb.TranslateStreamResponse(results=pb.TranslateStreamResults(results=responses))


async def _cancel_when(event: asyncio.Event, task: asyncio.Task[Any]) -> None:
    await event.wait()
    task.cancel()
