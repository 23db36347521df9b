"""A real `dragoman serve` of the bundle, kept busy for some seconds: what its door takes, and its memory."""

import asyncio
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import grpc.aio
from dragoman_bundle import Bundle

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc as pb_grpc
from dragoman_server.sizing.child_server import ServerError, stop, wait_for_port
from dragoman_server.sizing.figures import ServerFigures
from dragoman_server.sizing.process_memory import memory_of
from dragoman_server.text.options import TranslationOptions

CALLERS_AN_ENGINE = 32
"""Callers, each with a text at a time, that keep an engine busy."""
LONE_SHARE = 0.4
"""Share of the time in which one caller is alone."""


@dataclass(frozen=True, kw_only=True)
class _Run:
    """Texts translated one after the other by so many callers."""

    seconds: float
    latencies: list[float]


def measure_server(
    bundle: Bundle,
    lines: Sequence[str],
    options: TranslationOptions,
    arguments: Sequence[str],
    *,
    num_engines: int,
    seconds: float,
) -> ServerFigures:
    """Measures the work of a server besides its engines'. `arguments` say which graphs it runs.

    Its engines have processes of their own, at least two of them, so that the main process is its door alone.
    Raises ServerError.
    """
    num_engines = max(2, num_engines)
    requests = [
        pb.TranslateRequest(
            texts=[line],
            model=bundle.manifest.key,
            options=pb.DecodingOptions(beam_size=options.beam_size),
        )
        for line in lines
    ]
    with _running(bundle, num_engines, arguments) as (process, port):
        address = f"127.0.0.1:{port}"
        try:
            asyncio.run(_call(address, requests, callers=1, seconds=0.1 * seconds))
            alone = asyncio.run(_call(address, requests, callers=1, seconds=LONE_SHARE * seconds))
            before = _processor_seconds(process)
            crowd = asyncio.run(
                _call(
                    address,
                    requests,
                    callers=CALLERS_AN_ENGINE * num_engines,
                    seconds=(1 - LONE_SHARE) * seconds,
                )
            )
        except grpc.aio.AioRpcError as error:
            raise ServerError(f"the server did not translate the load: {error.details()}") from error
        used = _processor_seconds(process) - before
        memory = memory_of(process)
    return ServerFigures(
        num_engines=num_engines,
        door_seconds=used / len(crowd.latencies),
        lone_seconds=median(alone.latencies),
        memory_bytes=memory.total,
        texts_per_second=len(crowd.latencies) / crowd.seconds,
    )


async def _call(
    address: str, requests: Sequence[pb.TranslateRequest], *, callers: int, seconds: float
) -> _Run:
    endless = itertools.cycle(requests)
    latencies: list[float] = []
    async with grpc.aio.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        stub: pb_grpc.TranslationServiceAsyncStub = pb_grpc.TranslationServiceStub(channel)
        began = time.monotonic()

        async def caller() -> None:
            while not latencies or time.monotonic() - began < seconds:
                started = time.monotonic()
                await stub.Translate(next(endless))
                latencies.append(time.monotonic() - started)

        await asyncio.gather(*(caller() for _ in range(callers)))
        return _Run(seconds=time.monotonic() - began, latencies=latencies)


@contextmanager
def _running(bundle: Bundle, num_engines: int, arguments: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The process and the port of a server of nothing but the bundle."""
    with TemporaryDirectory(prefix="dragoman-size-") as folder:
        models = Path(folder) / "models"
        link = models / bundle.manifest.key
        link.parent.mkdir(parents=True)
        link.symlink_to(bundle.path.resolve(), target_is_directory=True)
        log = Path(folder) / "server.log"
        command = [sys.executable, "-m", "dragoman_server", "--models", str(models), "--device", "cpu"]
        command += ["--port", "0", "--metrics-port", "0", "--threads", str(num_engines), *arguments]
        environment = {name: value for name, value in os.environ.items() if "DRAGOMAN_SERVE" not in name}
        with log.open("wb") as stream:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=environment
            )
        try:
            yield process.pid, wait_for_port(process, log)
        finally:
            stop(process)


def _processor_seconds(process: int) -> float:
    """The processor seconds of the process itself, without its children."""
    # Behind the name, which may hold anything: utime and stime are the 14th and 15th field of all.
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
