"""A server under load: throughput by kind of caller, and latency by load, alone and beside batch jobs."""

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import click
from dragoman_bundle import Bundle, open_bundle

from benchmarks.corpus import read_corpus
from benchmarks.engines import translation_options
from benchmarks.harness import BEAM, BUNDLE, INPUT, LIMIT, REPEATS, THREADS, Found, option, scenario, several
from benchmarks.load import (
    FILE_CALL_TEXTS,
    LATENCY_COLUMNS,
    WINDOW,
    Observed,
    arrivals_of,
    latency_row,
    make_requests,
    run_callers,
    run_closed_loop,
    run_file,
    run_job,
)
from benchmarks.machine import pinned_to, share_out
from benchmarks.measuring import in_turns, ratio, say, summarize
from benchmarks.report import Row, Table
from benchmarks.servers import Server, running_server
from dragoman.load import percentile
from dragoman.v1 import translation_pb2 as pb
from dragoman_server.config import EngineConfig, Precision
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.engine.scheduling.scheduler import CALM_SECONDS
from dragoman_server.models.loader import decoder_options, open_engine
from dragoman_server.offline.system import MAX_QUEUE, BundleSystem

CONTINUOUS, REQUEST = MODES = ("continuous", "request")
FILE, JOB, OFFLINE = "file", "job", "offline"
AIMED_LOAD = 75
BULK_LOAD = 25
"""Load of callers that are measured beside batch jobs, in percent of capacity."""


@scenario(
    BUNDLE,
    option(
        "--precision", "auto", "Which graphs the server runs.", type=click.Choice(["auto", "fp32", "int8"])
    ),
    INPUT,
    LIMIT,
    BEAM,
    THREADS,
    several("--loads", (25, 50, 75, 90), "Loads, in percent of the capacity of continuous batching."),
    option("--bulk-streams", 4, "Batch jobs beside which callers are measured."),
    option("--seconds", 15.0, "Length of one run at one load."),
    option("--saturation-sentences", 2000, "Sentences of one measurement of capacity."),
    option("--concurrency", 256, "Callers at a time while capacity is measured."),
    REPEATS,
)
def command(
    *,
    bundle: Path,
    precision: Precision,
    source: Path,
    limit: int | None,
    beam: int,
    threads: int,
    loads: list[int],
    bulk_streams: int,
    seconds: float,
    saturation_sentences: int,
    concurrency: int,
    repeats: int,
) -> Found:
    """Put a Poisson load on a real server and compare continuous with request-level batching.

    Capacity is measured first, with as many callers as keep the server busy; then latency, at shares of it,
    and at last beside batch jobs. The server gets as many cores as it has threads, and the load comes from
    the others, where there are any.
    """
    corpus, opened, cores = read_corpus(source, None, limit), open_bundle(bundle), share_out(threads)
    if not cores.are_apart:
        say(f"server and load share {len(cores.server)} cores: figures are worse than the server is")
    requests = make_requests(corpus.sources, opened, beam_size=beam)
    options = {"--precision": precision, "--threads": threads, "--max-beam-size": beam}
    with ExitStack() as stack:
        with pinned_to(cores.server):
            servers = {
                mode: stack.enter_context(
                    running_server(bundle, opened.manifest.key, {**options, "--batching": mode})
                )
                for mode in MODES
            }
            engine = _open_engine(opened, precision, threads, beam)
            stack.callback(engine.close)
        stack.enter_context(pinned_to(cores.generator))
        system = BundleSystem(opened, engine, translation_options(opened, beam), "")
        cases = _capacity_cases(servers, requests, saturation_sentences, concurrency)
        cases[OFFLINE] = partial(_offline, system, corpus.sources, saturation_sentences, cores.server)
        # Whatever is allocated at first use is there before anything counts.
        for run in cases.values():
            run()
        found = in_turns(cases, repeats, lambda rate: f"{rate:,.1f} sentences/s")
        capacity = median(found[CONTINUOUS])
        rows: list[dict[str, Any]] = []
        for load in loads:
            arrivals = [
                arrivals_of(requests, load / 100 * capacity, seconds, seed) for seed in range(repeats)
            ]
            runs = {mode: partial(_observe, servers[mode], requests, iter(arrivals), 0) for mode in MODES}
            for mode, observed in in_turns(runs, repeats, _show).items():
                row = _row(observed, load, load / 100 * capacity)
                rows.append({"mode": mode, **row})
        arrivals = [
            arrivals_of(requests, BULK_LOAD / 100 * capacity, seconds, seed) for seed in range(repeats)
        ]
        jobs = {
            streams: partial(_observe, servers[CONTINUOUS], requests, iter(arrivals), streams)
            for streams in (0, bulk_streams)
        }
        beside = [
            {"streams": streams, **_row(observed, BULK_LOAD, BULK_LOAD / 100 * capacity)}
            for streams, observed in in_turns(jobs, repeats, _show).items()
        ]
    capacities = [
        {"case": case, "rate": summarize(rates).median, "spread": summarize(rates).spread}
        for case, rates in found.items()
    ]
    facts = {
        "bundle": opened.manifest.key,
        "input": corpus.name,
        "beam": beam,
        "threads": threads,
        "repeats": repeats,
    }
    return Found(
        tables=[
            Table(
                name="capacity",
                title=f"Throughput at saturation, {saturation_sentences:,} sentences",
                columns=[("case", "engine"), ("rate", "sentences/s", ",.1f"), ("spread", "spread", ".0%")],
                rows=capacities,
                note="continuous and request: the server, over gRPC, one sentence a call. file: the "
                f"continuous one, all sentences at once in calls of {FILE_CALL_TEXTS}. offline: the engine "
                "alone, all sentences at once, with the same options, on the same cores, from text to text. "
                f"job: the continuous one, a TranslateStream alone with {WINDOW} sentences under way.",
            ),
            _latency_table("rows", f"Open-loop Poisson load, {seconds:g} s a run", ("mode", "mode"), rows),
            _latency_table(
                "beside_bulk",
                f"Callers alone and beside batch jobs, {seconds:g} s a run",
                ("streams", "batch jobs", "d"),
                beside,
            ),
            _aim_table(found, rows, beside),
        ],
        facts={**facts, "apart": cores.are_apart},
    )


def _open_engine(bundle: Bundle, precision: Precision, threads: int, beam: int) -> EnginePool:
    """The engine that the server has, without the server."""
    config = EngineConfig(
        device="cpu", precision=precision, threads=threads, max_queue=MAX_QUEUE, max_queue_seconds=math.inf
    )
    return open_engine(bundle, decoder_options(config), config, max_beam_size=beam).engine


def _capacity_cases(
    servers: Mapping[str, Server], requests: Sequence[pb.TranslateRequest], total: int, concurrency: int
) -> dict[str, Callable[[], float]]:
    """Measurements of sentences a second, by name."""
    cases: dict[str, Callable[[], float]] = {
        mode: partial(run_closed_loop, server.address, requests, total=total, concurrency=concurrency)
        for mode, server in servers.items()
    }
    address = servers[CONTINUOUS].address

    def job() -> float:
        # Callers who have just been there would hold the job back.
        time.sleep(CALM_SECONDS)
        return run_job(address, requests, total=total)

    return {**cases, FILE: partial(run_file, address, requests, total=total), JOB: job}


def _offline(system: BundleSystem, sentences: Sequence[str], total: int, cores: tuple[int, ...]) -> float:
    lines = list(itertools.islice(itertools.cycle(sentences), total))
    with pinned_to(cores):
        started = time.perf_counter()
        system.translate(lines)
        return total / (time.perf_counter() - started)


def _observe(
    server: Server, requests: Sequence[pb.TranslateRequest], arrivals: Any, streams: int
) -> dict[str, Any]:
    """One open-loop run of the next arrivals, and what the server says of it."""

    def read() -> tuple[float, float, float]:
        names = ("dragoman_step_rows_count", "dragoman_step_rows_sum", "process_cpu_seconds_total")
        steps, rows, used = (server.metric(name) for name in names)
        return steps, rows, used

    steps, rows, used = read()
    began = time.perf_counter()
    observed: Observed = run_callers(server.address, requests, next(arrivals), bulk_streams=streams)
    took = time.perf_counter() - began
    steps, rows, used = (after - before for after, before in zip(read(), (steps, rows, used), strict=True))
    return {"observed": observed, "mean_rows": rows / max(1.0, steps), "server_cores": used / took}


def _show(run: Mapping[str, Any]) -> str:
    p99 = 1e3 * percentile(run["observed"].answered.latencies, 99)
    return f"p99 {p99:,.0f} ms, {run['mean_rows']:.0f} rows a step"


def _row(runs: Sequence[Mapping[str, Any]], load: int, rate: float) -> dict[str, Any]:
    answered = [run["observed"].answered for run in runs]
    return {
        "load": load / 100,
        "arrivals_per_second": rate,
        **latency_row(answered),
        "mean_rows": median(run["mean_rows"] for run in runs),
        "bulk_per_second": median(run["observed"].bulk_per_second for run in runs),
        "server_cores": median(run["server_cores"] for run in runs),
        "generator_cores": max(run.generator_cores for run in answered),
    }


def _latency_table(name: str, title: str, first: Any, rows: Sequence[Row]) -> Table:
    return Table(
        name=name,
        title=title,
        columns=[
            first,
            ("load", "load", ".0%"),
            ("arrivals_per_second", "arrivals/s", ",.1f"),
            *LATENCY_COLUMNS,
            ("bulk_per_second", "batch sentences/s", ",.1f"),
            ("mean_rows", "rows a step", ".1f"),
            ("server_cores", "server cores", ".2f"),
            ("generator_cores", "generator cores", ".2f"),
        ],
        rows=rows,
        note="Load: arrivals as a share of the capacity of continuous batching. Latency counts from when a "
        f"sentence was to arrive. Each batch job is a TranslateStream with {WINDOW} sentences under way.",
    )


def _aim_table(capacity: Mapping[str, Sequence[float]], rows: Sequence[Row], beside: Sequence[Row]) -> Table:
    """What is aimed at beside what was measured, each a ratio of two figures repeat by repeat."""
    p99 = {row["mode"]: row["p99_ms_repeats"] for row in rows if row["load"] == AIMED_LOAD / 100}
    alone, jobs = (row["p99_ms_repeats"] for row in beside)
    compared = [
        ("p99 of continuous over request at 75%", p99.get(CONTINUOUS), p99.get(REQUEST), "at most 0.5"),
        ("capacity of continuous over request", capacity[CONTINUOUS], capacity[REQUEST], "at least 1.3"),
        (
            "p99 of callers beside batch jobs over alone",
            jobs,
            alone,
            f"at most {EngineConfig.max_bulk_slowdown:g}",
        ),
        ("served over offline, a sentence a call", capacity[CONTINUOUS], capacity[OFFLINE], "at least 0.85"),
        (
            f"served over offline, {FILE_CALL_TEXTS} a call",
            capacity[FILE],
            capacity[OFFLINE],
            "at least 0.85",
        ),
        ("served over offline, a batch job", capacity[JOB], capacity[OFFLINE], "at least 0.85"),
    ]
    found = [
        {"name": name, "value": ratio(one, other).median, "spread": ratio(one, other).spread, "aim": aim}
        for name, one, other, aim in compared
        if one and other
    ]
    columns = [("name", "ratio"), ("value", "measured", ".2f"), ("spread", "spread", ".0%"), ("aim", "aim")]
    note = "Each ratio is the median of the repeats' own."
    return Table(name="aims", title="Aims", columns=columns, rows=found, note=note)  # type: ignore[arg-type]
