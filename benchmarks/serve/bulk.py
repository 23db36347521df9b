"""A batch job beside the callers: a stream that always has a window of sentences under way."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from dragoman.v1 import translation_pb2 as pb

if TYPE_CHECKING:
    from dragoman.v1 import translation_pb2_grpc as pb_grpc

    Stub = pb_grpc.TranslationServiceAsyncStub


WINDOW = 256
"""Sentences under way, as `dragoman translate-file` has them."""


class BulkJob:
    """Streams the sentences over and over until it is cancelled; one goes out for each answer."""

    def __init__(self, requests: Sequence[pb.TranslateRequest]) -> None:
        self._requests = requests
        self._permits = asyncio.Semaphore(WINDOW)
        self.num_answered = 0
        """Sentences answered so far."""

    async def run(self, stub: "Stub") -> None:
        """Raises grpc.aio.AioRpcError where the stream fails, RuntimeError where a sentence does."""
        async for answer in stub.TranslateStream(self._messages()):
            if answer.HasField("error"):
                raise RuntimeError(f"a batch job's sentence failed: {answer.error.message}")
            self.num_answered += 1
            self._permits.release()

    async def _messages(self) -> AsyncIterator[pb.TranslateStreamRequest]:
        first = self._requests[0]
        yield pb.TranslateStreamRequest(
            config=pb.TranslateStreamConfig(
                source_language=first.source_language,
                target_language=first.target_language,
                options=first.options,
                segmentation=first.segmentation,
                priority=pb.PRIORITY_BULK,
            )
        )
        for number in itertools.count():
            await self._permits.acquire()
            text = self._requests[number % len(self._requests)].texts[0]
            yield pb.TranslateStreamRequest(item=pb.TranslateStreamItem(id=str(number), text=text))
