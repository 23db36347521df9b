"""Servers of the same weights, `dragoman serve` and CTranslate2 behind a plain one: latency and memory."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import grpc

import dragoman
from benchmarks.measuring import interleave, summarize
from benchmarks.peers.same_weights.speed import BEAMS, OURS, PEER, Prepared
from benchmarks.peers.toolkits import fastest_instructions
from benchmarks.peers.worker import running_worker
from benchmarks.progress import Progress
from benchmarks.serve.arrivals import draw_arrivals
from benchmarks.serve.cores import Cores, pinned_to, share_out
from benchmarks.serve.load import Answered, make_requests, run_closed_loop, run_open_loop
from benchmarks.serve.percentiles import percentile
from benchmarks.serve.server_process import running_server
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc as pb_grpc
from dragoman_server.sizing.process_memory import memory_of

BEAM = BEAMS[0]
LOADS = (0.25, 0.5, 0.75)
PERCENTS = (50, 95, 99)
CONCURRENCY = 128
"""Callers at a time while it is measured what a server bears."""
MAX_BATCHES = (8, 32)
"""Sentences that CTranslate2's server takes at most at a time: of these the better counts."""
DEADLINE_SECONDS = 60.0
MIB = 2**20


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Of CTranslate2's server."""

    workers: int
    threads_per_worker: int
    batch: int

    def __str__(self) -> str:
        return f"{self.workers} x {self.threads_per_worker}, {self.batch}"


@dataclass(frozen=True, kw_only=True)
class Running:
    """A server."""

    address: str
    process: int


def measure_served(
    prepared: Prepared, *, threads: int, repeats: int, seconds: float
) -> list[dict[str, object]]:
    """A row for each server and load. Raises PeerMissingError and ServerError."""
    cores, requests = share_out(threads), _requests(prepared)
    settings = list(settings_of_server(threads))
    progress = Progress(len(settings) + 2 * repeats * (1 + len(LOADS)))

    def bears(address: str) -> float:
        total = len(requests)
        return run_closed_loop(address, requests, total=total, concurrency=min(CONCURRENCY, total))

    def on_capacity(repeat: int, system: str, rate: float) -> None:
        progress.advance(f"{system}: {rate:,.1f} sentences/s at most")

    tried: dict[Setting, float] = {}
    for setting in settings:
        with _ctranslate2(prepared, setting, cores) as server, pinned_to(cores.generator):
            bears(server.address)
            tried[setting] = bears(server.address)
            progress.advance(f"{PEER}, {setting}: {tried[setting]:,.1f} sentences/s at most")
    best = max(tried, key=lambda each: tried[each])
    answered: dict[tuple[str, float], list[Answered]] = defaultdict(list)
    with ExitStack() as stack:
        addresses = {
            OURS: stack.enter_context(_ours(prepared, threads, cores)).address,
            PEER: stack.enter_context(_ctranslate2(prepared, best, cores)).address,
        }
        stack.enter_context(pinned_to(cores.generator))
        for address in addresses.values():
            bears(address)
            assert _num_tokens(address, requests[0]) == prepared.steps, "not as many tokens"
        cases = {system: partial(bears, address) for system, address in addresses.items()}
        measured = interleave(cases, repeats, on_capacity)
        capacity = {system: summarize(found).median for system, found in measured.items()}
        rates = {load: load * capacity[OURS] for load in LOADS}
        for repeat in range(repeats):
            for load, rate in rates.items():
                arrivals = draw_arrivals(rate=rate, seconds=seconds, num_sentences=len(requests), seed=repeat)
                for system, address in addresses.items():
                    one = run_open_loop(
                        address, requests, arrivals, seconds=seconds, deadline_seconds=DEADLINE_SECONDS
                    )
                    answered[system, load].append(one)
                    p99 = 1e3 * percentile(one.latencies, 99)
                    progress.advance(f"{system} at {load:.0%}, {rate:,.1f} arrivals/s: p99 {p99:,.0f} ms")
    return [
        {
            "size": prepared.name,
            "shortlist": prepared.models.shortlist,
            "threads": threads,
            "system": system,
            "setting": str(best) if system == PEER else None,
            "capacity": capacity[system],
            "load": load,
            "arrivals_per_second": rates[load],
            **_latencies(runs),
            "failed": sum(run.num_failed for run in runs),
        }
        for (system, load), runs in answered.items()
    ]


def measure_memory(prepared: Prepared, *, threads: int, repeats: int) -> list[dict[str, object]]:
    """A row for each server and number of threads. Raises PeerMissingError and ServerError."""
    requests = _requests(prepared)
    counts = sorted({1, threads})
    progress = Progress(2 * len(counts) * repeats)
    found: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    for _ in range(repeats):
        for number in counts:
            cores = share_out(number)
            setting = Setting(workers=number, threads_per_worker=1, batch=MAX_BATCHES[-1])
            for system, running in (
                (OURS, _ours(prepared, number, cores)),
                (PEER, _ctranslate2(prepared, setting, cores)),
            ):
                with running as server:
                    ready = memory_of(server.process).total / MIB
                    concurrency = min(CONCURRENCY, len(requests))
                    run_closed_loop(server.address, requests, total=len(requests), concurrency=concurrency)
                    after = memory_of(server.process).total / MIB
                found[number, system].append((ready, after))
                progress.advance(f"{system}, {number} threads: {ready:,.0f} MiB, then {after:,.0f}")
    return [
        {
            "size": prepared.name,
            "shortlist": prepared.models.shortlist,
            "threads": number,
            "system": system,
            "ready": median(ready for ready, _ in runs),
            "after": median(after for _, after in runs),
        }
        for (number, system), runs in found.items()
    ]


def settings_of_server(threads: int) -> Iterator[Setting]:
    """Ways for CTranslate2's server to use so many threads."""
    for workers, threads_per_worker in sorted({(threads, 1), (1, threads)}, reverse=True):
        for batch in MAX_BATCHES:
            yield Setting(workers=workers, threads_per_worker=threads_per_worker, batch=batch)


@contextmanager
def _ours(prepared: Prepared, threads: int, cores: Cores) -> Iterator[Running]:
    bundle = prepared.models.bundle
    with running_server(
        bundle.path,
        bundle.manifest.key,
        mode="continuous",
        precision="int8",
        threads=threads,
        max_beam_size=BEAM,
        cores=cores.server,
    ) as server:
        yield Running(address=server.address, process=server.process_id)


@contextmanager
def _ctranslate2(prepared: Prepared, setting: Setting, cores: Cores) -> Iterator[Running]:
    task = {
        "model": str(prepared.models.converted),
        "source": str(prepared.models.checkpoint / "source.spm"),
        "target": str(prepared.models.checkpoint / "target.spm"),
        "workers": setting.workers,
        "threads_per_worker": setting.threads_per_worker,
        "batch": setting.batch,
        "beam": BEAM,
        "steps": prepared.steps,
        "shortlist": prepared.models.shortlist,
    }
    clients = str(Path(dragoman.__file__).parents[1])
    script = Path(__file__).with_name("ctranslate2_server.py")
    with ExitStack() as stack:
        with pinned_to(cores.server):
            worker, answer = stack.enter_context(
                running_worker(
                    prepared.python, script, task, {**fastest_instructions(), "PYTHONPATH": clients}
                )
            )
        yield Running(address=f"127.0.0.1:{answer['port']}", process=worker.process_id)


def _requests(prepared: Prepared) -> list[pb.TranslateRequest]:
    """A call for each text: of every one a single search, of as many tokens."""
    manifest = prepared.models.bundle.manifest
    requests = make_requests(
        prepared.texts, source=manifest.source_language, target=manifest.target_language, beam_size=BEAM
    )
    for request in requests:
        request.options.max_output_tokens = prepared.steps
        request.protection.automatic = False
    return requests


def _num_tokens(address: str, request: pb.TranslateRequest) -> int:
    with grpc.insecure_channel(address) as channel:
        stub: pb_grpc.TranslationServiceStub = pb_grpc.TranslationServiceStub(channel)
        (translation,) = stub.Translate(request, timeout=DEADLINE_SECONDS).translations
        return translation.target_tokens


def _latencies(runs: Sequence[Answered]) -> dict[str, object]:
    found = {
        percent: summarize([1e3 * percentile(run.latencies, percent) for run in runs]) for percent in PERCENTS
    }
    return {
        **{f"p{percent}_ms": found[percent].median for percent in PERCENTS},
        "p99_spread": found[99].spread,
    }
