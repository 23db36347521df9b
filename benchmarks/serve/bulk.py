"""A batch job: a stream that always has a window of sentences under way."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from dragoman.messages import TEXTS_PER_MESSAGE, stream_items
from dragoman.v1 import translation_pb2 as pb

if TYPE_CHECKING:
    from dragoman.v1 import translation_pb2_grpc as pb_grpc

    Stub = pb_grpc.TranslationServiceAsyncStub


WINDOW = 256
"""Sentences under way, as `dragoman translate-file` has them."""


class BulkJob:
    """Streams the sentences over and over, a window of them under way."""

    def __init__(self, requests: Sequence[pb.TranslateRequest], *, total: int | None = None) -> None:
        """It ends after `total` sentences, without it when it is cancelled."""
        self._requests = requests
        self._total = total
        self._permits = asyncio.Semaphore(WINDOW)
        self.num_answered = 0
        """Sentences answered so far."""

    async def run(self, stub: "Stub") -> None:
        """Raises grpc.aio.AioRpcError where the stream fails, RuntimeError where a sentence does."""
        async for response in stub.TranslateStream(self._messages()):
            for answer in response.results.results or [response]:
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
                join_results=True,
            )
        )
        numbers = iter(itertools.count() if self._total is None else range(self._total))
        while chosen := list(itertools.islice(numbers, TEXTS_PER_MESSAGE)):
            for _ in chosen:
                await self._permits.acquire()
            yield stream_items([self._item(number) for number in chosen])

    def _item(self, number: int) -> pb.TranslateStreamItem:
        text = self._requests[number % len(self._requests)].texts[0]
        return pb.TranslateStreamItem(id=str(number), text=text)
