"""A TranslateStream call: items in, results out as they complete, a bounded number of them at a time.

Owns the window, and that every item read is answered once. Must not know what an item's translation takes.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.errors import InvalidRequestError, NotServingError, Violation
from dragoman_server.interception import Context

Answer = Callable[[pb.TranslateStreamItem], Awaitable[pb.TranslateStreamResponse]]


class TranslationStream:
    """Answers the items of one stream."""

    def __init__(self, answer: Answer, *, context: Context, max_items: int) -> None:
        """`answer` turns an item into its response, which holds the error if there is one."""
        self._answer = answer
        self._context = context
        self._slots = asyncio.Semaphore(max_items)
        self._writing = asyncio.Lock()

    async def run(self, messages: AsyncIterator[pb.TranslateStreamRequest], draining: asyncio.Event) -> None:
        """Reads items to the end of `messages`, or until `draining` is set, and answers each one it has read.

        Raises afterwards InvalidRequestError where a message was no item, NotServingError where items may be
        left unread.
        """
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(self._read(messages, tasks))
            watching = tasks.create_task(_cancel_when(draining, reading))
            reading.add_done_callback(lambda _: watching.cancel())
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
                tasks.create_task(self._respond(message.item))
                await self._slots.acquire()
        except InvalidRequestError as error:
            return error
        return None

    async def _respond(self, item: pb.TranslateStreamItem) -> None:
        response = await self._answer(item)
        # A call takes one write at a time. The item's place is free once the caller takes its answer.
        async with self._writing:
            # Fails where the caller has just gone away; that this ends the call is told in another way.
            with contextlib.suppress(grpc.aio.InternalError):
                await self._context.write(response)
        self._slots.release()


async def read_config(
    messages: AsyncIterator[pb.TranslateStreamRequest], draining: asyncio.Event
) -> pb.TranslateStreamConfig:
    """The first message's config.

    Raises InvalidRequestError where it is none, NotServingError where `draining` is set before it comes.
    """
    reading = asyncio.create_task(_read_first(messages))
    watching = asyncio.create_task(draining.wait())
    try:
        done, _ = await asyncio.wait({reading, watching}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        reading.cancel()
        watching.cancel()
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
