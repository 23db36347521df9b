"""A TranslateStream call: items in, results out as they complete, a bounded number of them at a time.

Owns the window, that every item read is answered once, and how long a stream may be idle: nothing comes in,
nothing is taken out, and nothing is under way. Must not know what an item's translation takes.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.errors import IdleStreamError, InvalidRequestError, NotServingError, Violation
from dragoman_server.interception import Context

Answer = Callable[[pb.TranslateStreamItem], Awaitable[pb.TranslateStreamResponse]]


class TranslationStream:
    """Answers the items of one stream."""

    def __init__(self, answer: Answer, *, context: Context, max_items: int, max_idle_seconds: float) -> None:
        """`answer` turns an item into its response, which holds the error if there is one."""
        self._answer = answer
        self._context = context
        self._slots = asyncio.Semaphore(max_items)
        self._writing = asyncio.Lock()
        self._max_idle_seconds = max_idle_seconds
        self._patience = asyncio.timeout(max_idle_seconds)
        self._num_under_way = 0

    async def run(self, messages: AsyncIterator[pb.TranslateStreamRequest], draining: asyncio.Event) -> None:
        """Reads items to the end of `messages`, or until `draining` is set, and answers each one it has read.

        Raises afterwards InvalidRequestError where a message was no item, NotServingError where items may be
        left unread; and IdleStreamError as soon as the stream has been idle for too long.
        """
        try:
            async with self._patience, asyncio.TaskGroup() as tasks:
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
        """What is wrong with the last message that was read, if anything: the items before are answered."""
        await self._slots.acquire()
        try:
            async for message in messages:
                if message.WhichOneof("request") != "item":
                    description = "must be an item: only the first message of a stream is a config"
                    return InvalidRequestError([Violation(field="request", description=description)])
                self._num_under_way += 1
                self._moved()
                tasks.create_task(self._respond(message.item))
                await self._slots.acquire()
        except InvalidRequestError as error:
            return error
        return None

    async def _respond(self, item: pb.TranslateStreamItem) -> None:
        response = await self._answer(item)
        self._num_under_way -= 1
        self._moved()
        # A call takes one write at a time. The item's place is free once the caller takes its answer.
        async with self._writing:
            # Fails where the caller has just gone away; that this ends the call is told in another way.
            with contextlib.suppress(grpc.aio.InternalError):
                await self._context.write(response)
        self._moved()
        self._slots.release()

    def _moved(self) -> None:
        """Begins the time anew that the stream may be idle; it doesn't run while items are under way."""
        if not self._patience.expired():
            until = asyncio.get_running_loop().time() + self._max_idle_seconds
            self._patience.reschedule(None if self._num_under_way else until)


async def read_config(
    messages: AsyncIterator[pb.TranslateStreamRequest], draining: asyncio.Event, *, max_idle_seconds: float
) -> pb.TranslateStreamConfig:
    """The first message's config.

    Raises InvalidRequestError where it is none, NotServingError where `draining` is set before it comes, and
    IdleStreamError where it does not come in time.
    """
    reading = asyncio.create_task(_read_first(messages))
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
        raise InvalidRequestError([Violation(field="config", description=description)])
    return first.config


async def _read_first(
    messages: AsyncIterator[pb.TranslateStreamRequest],
) -> pb.TranslateStreamRequest | None:
    return await anext(messages, None)


async def _cancel_when(event: asyncio.Event, task: asyncio.Task[Any]) -> None:
    await event.wait()
    task.cancel()
