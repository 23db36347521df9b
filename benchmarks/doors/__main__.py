"""`python -m benchmarks.doors`: what callers of gRPC notice of load on the HTTP door of their server."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from dragoman_bundle import BundleError, open_bundle
from rich.console import Console

from benchmarks.corpus import read_corpus
from benchmarks.machine import describe_machine
from benchmarks.options import (
    CONTEXT,
    beam_option,
    bundle_option,
    command_line,
    input_option,
    json_option,
    markdown_option,
    repeats_option,
)
from benchmarks.progress import Progress
from benchmarks.report import Column, Report, Table
from benchmarks.serve.arrivals import draw_arrivals
from benchmarks.serve.load import make_requests, run_open_loop
from benchmarks.serve.percentiles import percentile
from benchmarks.serve.server_process import ServerProcess, running_server

_DEADLINE_SECONDS = 30.0
NOWHERE, ELSEWHERE, HERE = "no load", "load on another server", "load on their server"
COLUMNS = [
    Column(key="load", header="HTTP"),
    Column(key="http_per_second", header="HTTP requests/s", format=".1f"),
    Column(key="requests", header="requests", format=","),
    Column(key="p50", header="p50, ms", format=".1f"),
    Column(key="p99", header="p99, ms", format=".1f"),
    Column(key="times", header="p99 over that of no load", format=".2f"),
]


@click.command(context_settings=CONTEXT)
@bundle_option
@input_option
@click.option("--per-second", default=8.0, show_default=True, help="Sentences a second over gRPC.")
@click.option("--seconds", default=15.0, show_default=True, help="Of each measurement.")
@click.option("--idle", default=300, show_default=True, help="HTTP connections that send nothing.")
@click.option("--refused", default=145.0, show_default=True, help="HTTP requests a second that are refused.")
@beam_option
@repeats_option
@json_option
@markdown_option
def main(
    bundle: Path,
    source: Path,
    per_second: float,
    seconds: float,
    idle: int,
    refused: float,
    beam: int,
    repeats: int,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Compare the latencies of gRPC callers without HTTP load, with it, and with it on another server.

    What the load costs the machine is in the last two; what it costs by the door is the last alone. All are
    measured in turn with each other.
    """
    machine = describe_machine()
    try:
        manifest = open_bundle(bundle).manifest
    except BundleError as error:
        raise click.ClickException(str(error)) from error
    requests = make_requests(
        read_corpus(source, None, None).sources,
        source=manifest.source_language,
        target=manifest.target_language,
        beam_size=beam,
    )
    progress = Progress(3 * repeats)
    found: dict[str, list[float]] = defaultdict(list)
    loads: dict[str, list[dict[str, float]]] = defaultdict(list)
    with _server(bundle, manifest.key, beam) as server, _server(bundle, manifest.key, beam) as other:
        for number in range(repeats):
            for load, loaded in ((NOWHERE, None), (ELSEWHERE, other), (HERE, server)):
                arrivals = draw_arrivals(
                    rate=per_second, seconds=seconds, num_sentences=len(requests), seed=number
                )
                with _http_load(loaded, idle, refused, loads[load]):
                    latencies = run_open_loop(
                        server.address,
                        requests,
                        arrivals,
                        seconds=seconds,
                        deadline_seconds=_DEADLINE_SECONDS,
                    ).latencies
                found[load] += latencies
                progress.advance(load)
    # Of all repeats together: of a single one a few requests would make the p99.
    rows = [
        {
            "load": load,
            "http_per_second": _per_second(loads[load]),
            "requests": len(latencies),
            "p50": 1000 * percentile(latencies, 50),
            "p99": 1000 * percentile(latencies, 99),
            "times": percentile(latencies, 99) / percentile(found[NOWHERE], 99),
        }
        for load, latencies in found.items()
    ]
    note = (
        f"{per_second:g} sentences a second over gRPC; {idle} idle HTTP connections and {refused:g} refused "
        f"requests a second were asked for; {repeats} times {seconds:g} s each, in turns."
    )
    report = Report(
        command=command_line("benchmarks.doors"),
        results={"machine": machine, "rows": rows},
        tables=[Table(title="gRPC beside HTTP", columns=COLUMNS, rows=rows, note=note)],
    )
    report.publish(Console(), json_path=json_path, markdown_path=markdown_path)


@contextmanager
def _server(bundle: Path, key: str, beam: int) -> Iterator[ServerProcess]:
    cores = tuple(os.sched_getaffinity(0))
    with running_server(
        bundle,
        key,
        mode="continuous",
        precision="auto",
        threads=max(1, len(cores) - 1),
        max_beam_size=beam,
        cores=cores,
        has_http=True,
    ) as server:
        yield server


@contextmanager
def _http_load(
    server: ServerProcess | None, idle: int, per_second: float, loads: list[dict[str, float]]
) -> Iterator[None]:
    """Puts load on a server meanwhile, and adds how many requests that were in how many seconds."""
    if server is None:
        yield
        return
    command = [sys.executable, "-m", "benchmarks.doors.http_load"]
    command += [str(server.http_port), str(idle), str(per_second)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise click.ClickException("the load on the HTTP port did not begin; what it says stands above")
        try:
            yield
        finally:
            process.stdin.close()
            told = process.stdout.read()
    if process.returncode:
        raise click.ClickException("the load on the HTTP port failed; what it says stands above")
    loads.append(json.loads(told))


def _per_second(loads: list[dict[str, float]]) -> float:
    """Requests of all repeats, by their seconds."""
    return sum(load["requests"] for load in loads) / sum(load["seconds"] for load in loads) if loads else 0.0


if __name__ == "__main__":
    main()
