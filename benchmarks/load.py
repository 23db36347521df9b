"""The load that is put on a server: callers that wait for nobody, callers that keep it busy, batch jobs."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import grpc
import grpc.aio
from dragoman_bundle import Bundle

from benchmarks.measuring import summarize
from dragoman.connection.channel import CHANNEL_OPTIONS
from dragoman.load import Answered, Arrival, draw_arrivals, percentile, run_open_loop
from dragoman.messages import TEXTS_PER_MESSAGE, stream_items
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc as pb_grpc

if TYPE_CHECKING:
    Stub = pb_grpc.TranslationServiceAsyncStub

T = TypeVar("T")
FILE_CALL_TEXTS = 100
"""Sentences in each call of a file."""
WINDOW = 256
"""Sentences of a batch job under way, as `dragoman translate-file` has them."""
DEADLINE_SECONDS = 30.0
"""A caller gives up after so long."""
PERCENTS = (50, 95, 99)


def make_requests(
    sentences: Sequence[str], bundle: Bundle, *, beam_size: int, max_output_tokens: int | None = None
) -> list[pb.TranslateRequest]:
    """A call for each sentence, of the bundle's languages."""
    manifest = bundle.manifest
    return [
        pb.TranslateRequest(
            texts=[sentence],
            source_language=manifest.source_language,
            target_language=manifest.target_language,
            options=pb.DecodingOptions(beam_size=beam_size, max_output_tokens=max_output_tokens),
            segmentation=pb.SEGMENTATION_LINE,
        )
        for sentence in sentences
    ]


def arrivals_of(
    requests: Sequence[pb.TranslateRequest], rate: float, seconds: float, seed: int
) -> list[Arrival]:
    """Calls at random moments, each any of the requests."""
    return draw_arrivals(rate=rate, seconds=seconds, num_texts=len(requests), seed=seed)


@dataclass(frozen=True, kw_only=True)
class Observed:
    """An open-loop run, and the sentences a second that batch jobs beside it had answered."""

    answered: Answered
    bulk_per_second: float


def run_callers(
    address: str,
    requests: Sequence[pb.TranslateRequest],
    arrivals: Sequence[Arrival],
    *,
    bulk_streams: int = 0,
) -> Observed:
    """Sends every arrival at its time and waits for all answers.

    For as long as it takes, so many batch jobs stream the same sentences beside them, each as fast as it is
    answered. Raises grpc.aio.AioRpcError or RuntimeError where a job fails.
    """

    async def run(stub: "Stub") -> Observed:
        jobs = [BulkJob(requests) for _ in range(bulk_streams)]
        streaming = [asyncio.create_task(job.run(stub)) for job in jobs]

        def check_jobs() -> None:
            # Beside a job that failed callers had less company than the table says.
            for task in streaming:
                if task.done():
                    task.result()

        while not all(job.num_answered for job in jobs):
            await asyncio.sleep(0.05)
            check_jobs()
        before, began = sum(job.num_answered for job in jobs), time.perf_counter()
        answered = await run_open_loop(
            lambda text: stub.Translate(requests[text], timeout=DEADLINE_SECONDS),
            arrivals,
            failures=grpc.aio.AioRpcError,
            deadline_seconds=DEADLINE_SECONDS,
        )
        bulk = (sum(job.num_answered for job in jobs) - before) / (time.perf_counter() - began)
        check_jobs()
        for task in streaming:
            task.cancel()
        await asyncio.gather(*streaming, return_exceptions=True)
        return Observed(answered=answered, bulk_per_second=bulk)

    return _connected(address, run)


def run_closed_loop(
    address: str, requests: Sequence[pb.TranslateRequest], *, total: int, concurrency: int
) -> float:
    """Calls a second of so many callers at a time, who take turns with the requests until `total` are sent.

    Raises grpc.aio.AioRpcError where a call fails.
    """

    async def run(stub: "Stub") -> float:
        async def caller(numbers: Iterator[int]) -> None:
            for number in numbers:
                await stub.Translate(requests[number % len(requests)])

        numbers = iter(range(total))
        started = time.perf_counter()
        async with asyncio.TaskGroup() as callers:
            for _ in range(concurrency):
                callers.create_task(caller(numbers))
        return total / (time.perf_counter() - started)

    return _connected(address, run)


def run_file(address: str, requests: Sequence[pb.TranslateRequest], *, total: int) -> float:
    """Sentences a second of a file of `total` lines, the requests' in turns, whose calls come at once."""
    lines = list(itertools.islice(itertools.cycle(requests), total))
    calls = []
    for at in range(0, total, FILE_CALL_TEXTS):
        call = pb.TranslateRequest()
        call.CopyFrom(requests[0])
        call.texts[:] = [text for request in lines[at : at + FILE_CALL_TEXTS] for text in request.texts]
        calls.append(call)
    return total / len(calls) * run_closed_loop(address, calls, total=len(calls), concurrency=len(calls))


def run_job(address: str, requests: Sequence[pb.TranslateRequest], *, total: int) -> float:
    """Sentences a second of a batch job of `total` lines, the requests' in turns, with nobody beside it."""

    async def run(stub: "Stub") -> float:
        started = time.perf_counter()
        await BulkJob(requests, total=total).run(stub)
        return total / (time.perf_counter() - started)

    return _connected(address, run)


class BulkJob:
    """A stream that always has a window of sentences under way, over and over or until `total` are done."""

    def __init__(self, requests: Sequence[pb.TranslateRequest], *, total: int | None = None) -> None:
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
        config = pb.TranslateStreamConfig(
            source_language=first.source_language,
            target_language=first.target_language,
            options=first.options,
            segmentation=first.segmentation,
            priority=pb.PRIORITY_BULK,
            join_results=True,
            protection=first.protection if first.HasField("protection") else None,
        )
        yield pb.TranslateStreamRequest(config=config)
        numbers = iter(itertools.count() if self._total is None else range(self._total))
        while chosen := list(itertools.islice(numbers, TEXTS_PER_MESSAGE)):
            for _ in chosen:
                await self._permits.acquire()
            texts = [self._requests[number % len(self._requests)].texts[0] for number in chosen]
            items = zip(chosen, texts, strict=True)
            yield stream_items([pb.TranslateStreamItem(id=str(id_), text=text) for id_, text in items])


def _connected(address: str, run: "Callable[[Stub], Coroutine[None, None, T]]") -> T:
    async def connect() -> T:
        async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
            await channel.channel_ready()
            return await run(pb_grpc.TranslationServiceStub(channel))

    return asyncio.run(connect())


def latency_row(runs: Sequence[Answered]) -> dict[str, object]:
    """Medians of the runs' percentiles in ms, the repeats of the highest and its spread, and failures."""
    found = {
        percent: summarize([1e3 * percentile(run.latencies, percent) for run in runs]) for percent in PERCENTS
    }
    return {
        **{f"p{percent}_ms": found[percent].median for percent in PERCENTS},
        "p99_ms_repeats": list(found[99].values),
        "p99_spread": found[99].spread,
        "failed": sum(run.num_failed for run in runs),
    }


LATENCY_COLUMNS = (
    *((f"p{percent}_ms", f"p{percent} ms", ",.0f") for percent in PERCENTS),
    ("p99_spread", "spread of p99", ".0%"),
    ("failed", "failed", "d"),
)
"""How a table shows `latency_row`."""
