"""Puts a load on a server: arrivals that wait for nobody, or as many callers as it takes to keep it busy."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from benchmarks.serve.arrivals import Arrival
from benchmarks.serve.bulk import BulkJob
from dragoman.connection.channel import CHANNEL_OPTIONS
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc as pb_grpc

if TYPE_CHECKING:
    Stub = pb_grpc.TranslationServiceAsyncStub

WARMING_SHARE = 0.1
"""Share of an open-loop run at its beginning that is not counted: the server starts it empty."""
FILE_CALL_TEXTS = 100
"""Sentences in each call of a file."""
_LEAD_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What became of the counted arrivals of an open-loop run."""

    latencies: list[float]
    """Seconds from when a sentence was to arrive to its answer; of one that failed, at least its deadline."""
    num_failed: int
    seconds: float
    """From the first counted arrival to the end of the schedule, or the last answer where that is later."""
    late: float
    """Most seconds that the generator itself was behind the schedule."""
    generator_cores: float
    """Processor time that the generator used, as a number of cores."""
    bulk_per_second: float
    """Sentences a second that the batch jobs beside it had answered; 0 without any."""

    def goodput(self, objective_seconds: float) -> float:
        """Sentences a second that were answered within so long."""
        return sum(latency <= objective_seconds for latency in self.latencies) / self.seconds


def make_requests(
    sentences: Sequence[str], *, source: str, target: str, beam_size: int
) -> list[pb.TranslateRequest]:
    """A call for each sentence."""
    return [
        pb.TranslateRequest(
            texts=[sentence],
            source_language=source,
            target_language=target,
            options=pb.DecodingOptions(beam_size=beam_size),
            segmentation=pb.SEGMENTATION_LINE,
        )
        for sentence in sentences
    ]


def run_open_loop(
    address: str,
    requests: Sequence[pb.TranslateRequest],
    arrivals: Sequence[Arrival],
    *,
    seconds: float,
    deadline_seconds: float,
    bulk_streams: int = 0,
) -> Answered:
    """Sends every arrival at its time, whatever became of the others, and waits for all answers.

    A latency counts from the scheduled time: what the generator or the connection holds up is in it. For as
    long as it takes, so many batch jobs stream the same sentences beside it, each as fast as it is answered.
    """
    return asyncio.run(_open_loop(address, requests, arrivals, seconds, deadline_seconds, bulk_streams))


def run_closed_loop(
    address: str, requests: Sequence[pb.TranslateRequest], *, total: int, concurrency: int
) -> float:
    """Calls a second of so many callers at a time, who take turns with the requests until `total` are sent.

    Raises grpc.aio.AioRpcError where a call fails.
    """
    return asyncio.run(_closed_loop(address, requests, total, concurrency))


def run_file(address: str, requests: Sequence[pb.TranslateRequest], *, total: int) -> float:
    """Sentences a second of a file of `total` lines, the corpus in turns, all of whose calls come at once.

    Each call has FILE_CALL_TEXTS sentences. Raises grpc.aio.AioRpcError where a call fails.
    """
    lines = list(islice(cycle(requests), total))
    calls = [_joined(lines[at : at + FILE_CALL_TEXTS]) for at in range(0, total, FILE_CALL_TEXTS)]
    per_call = total / len(calls)
    return per_call * run_closed_loop(address, calls, total=len(calls), concurrency=len(calls))


def run_job(address: str, requests: Sequence[pb.TranslateRequest], *, total: int) -> float:
    """Sentences a second of a batch job of `total` lines, the corpus in turns, with nobody beside it.

    Raises grpc.aio.AioRpcError where its stream fails, RuntimeError where a sentence does.
    """
    return asyncio.run(_job(address, requests, total))


async def _job(address: str, requests: Sequence[pb.TranslateRequest], total: int) -> float:
    async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        stub: Stub = pb_grpc.TranslationServiceStub(channel)
        await channel.channel_ready()
        started = time.perf_counter()
        await BulkJob(requests, total=total).run(stub)
        return total / (time.perf_counter() - started)


async def _open_loop(
    address: str,
    requests: Sequence[pb.TranslateRequest],
    arrivals: Sequence[Arrival],
    seconds: float,
    deadline_seconds: float,
    bulk_streams: int,
) -> Answered:
    latencies: list[float] = []
    failures = 0
    late = 0.0
    begin = seconds * WARMING_SHARE if arrivals[-1].at >= seconds * WARMING_SHARE else 0.0

    async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        stub: Stub = pb_grpc.TranslationServiceStub(channel)
        await channel.channel_ready()
        jobs = [BulkJob(requests) for _ in range(bulk_streams)]
        streaming = [asyncio.create_task(job.run(stub)) for job in jobs]
        while not all(job.num_answered for job in jobs):
            await asyncio.sleep(_LEAD_SECONDS)
            for task in streaming:
                if task.done():
                    task.result()
        answered_before = sum(job.num_answered for job in jobs)
        processor_started = time.process_time()
        started = time.perf_counter() + _LEAD_SECONDS

        async def call(arrival: Arrival) -> None:
            nonlocal failures
            failed = False
            try:
                await stub.Translate(requests[arrival.sentence], timeout=deadline_seconds)
            except grpc.aio.AioRpcError:
                failed = True
            latency = time.perf_counter() - started - arrival.at
            if arrival.at >= begin:
                latencies.append(max(latency, deadline_seconds) if failed else latency)
                failures += failed

        async with asyncio.TaskGroup() as calls:
            for arrival in arrivals:
                await asyncio.sleep(max(0.0, started + arrival.at - time.perf_counter()))
                late = max(late, time.perf_counter() - started - arrival.at)
                calls.create_task(call(arrival))
        ended = time.perf_counter()
        bulk_answered = sum(job.num_answered for job in jobs) - answered_before
        for task in streaming:
            # Beside a job that failed callers had less company than the table says.
            if task.done():
                task.result()
            task.cancel()
        await asyncio.gather(*streaming, return_exceptions=True)
    return Answered(
        latencies=latencies,
        num_failed=failures,
        seconds=max(ended - started, seconds) - begin,
        late=late,
        generator_cores=(time.process_time() - processor_started) / (ended - started),
        bulk_per_second=bulk_answered / (ended - started),
    )


async def _closed_loop(
    address: str, requests: Sequence[pb.TranslateRequest], total: int, concurrency: int
) -> float:
    async def caller(stub: "Stub", numbers: Iterator[int]) -> None:
        for number in numbers:
            await stub.Translate(requests[number % len(requests)])

    async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        stub: Stub = pb_grpc.TranslationServiceStub(channel)
        await channel.channel_ready()
        numbers = iter(range(total))
        started = time.perf_counter()
        async with asyncio.TaskGroup() as callers:
            for _ in range(concurrency):
                callers.create_task(caller(stub, numbers))
        return total / (time.perf_counter() - started)


def _joined(requests: Sequence[pb.TranslateRequest]) -> pb.TranslateRequest:
    """One call of all of them."""
    joined = pb.TranslateRequest()
    joined.CopyFrom(requests[0])
    joined.texts[:] = [text for request in requests for text in request.texts]
    return joined
