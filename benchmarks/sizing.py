"""`python -m benchmarks.sizing`: what `dragoman size` expects of a server, beside what one does."""

from pathlib import Path

import click
from dragoman_bundle import open_bundle
from rich.console import Console

from benchmarks.corpus import read_corpus
from benchmarks.machine import describe_machine
from benchmarks.options import (
    CONTEXT,
    bundle_option,
    command_line,
    input_option,
    json_option,
    limit_option,
    markdown_option,
    threads_option,
)
from benchmarks.progress import Progress
from benchmarks.report import Column, Report, Row, Table
from benchmarks.serve.arrivals import draw_arrivals
from benchmarks.serve.cores import pinned_to, share_out
from benchmarks.serve.load import run_closed_loop, run_open_loop
from benchmarks.serve.percentiles import percentile
from benchmarks.serve.server_process import running_server
from dragoman.v1 import translation_pb2 as pb
from dragoman_server.sizing.measuring import measure
from dragoman_server.sizing.plan import Server

SHARES = (0.25, 0.5, 0.75)
DEADLINE_SECONDS = 30.0
CALLERS = 256
"""Callers at a time while capacity is measured."""


@click.command(context_settings=CONTEXT)
@bundle_option
@input_option
@limit_option
@threads_option
@click.option("--measure-seconds", default=20.0, show_default=True, help="As `dragoman size --seconds`.")
@click.option("--seconds", default=20.0, show_default=True, help="Length of one run at one load.")
@json_option
@markdown_option
def sizing(
    *,
    bundle: Path,
    source: Path,
    limit: int | None,
    threads: int,
    measure_seconds: float,
    seconds: float,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Work out what callers of a server wait, as `dragoman size` does; then put that load on a server.

    The server gets as many cores as it has threads, and the load comes from the others, where there are any.

    \b
      python -m benchmarks.sizing --bundle models/de-en/1 --limit 500
    """
    machine = describe_machine()
    corpus = read_corpus(source, None, limit)
    cores = share_out(threads)
    opened = open_bundle(bundle)
    manifest, beam_size = opened.manifest, opened.manifest.decoding.beam_size
    progress = Progress(1 + 1 + len(SHARES))
    measured = measure(
        opened,
        corpus.sources,
        cores=threads,
        beam_size=beam_size,
        precision="auto",
        seconds=measure_seconds,
        on_progress=progress.say,
    )
    server = Server(measured, cores=threads)
    progress.advance(f"capacity by arithmetic: {server.capacity:.1f} texts a second")
    requests = [
        pb.TranslateRequest(texts=[text], model=manifest.key, options=pb.DecodingOptions(beam_size=beam_size))
        for text in corpus.sources
    ]
    with (
        running_server(
            bundle,
            manifest.key,
            mode="continuous",
            precision="auto",
            threads=threads,
            max_beam_size=beam_size,
            cores=cores.server,
        ) as real,
        pinned_to(cores.generator),
    ):
        total = round(server.capacity * seconds / 2)
        before = real.processor_seconds()
        capacity = run_closed_loop(real.address, requests, total=total, concurrency=CALLERS)
        used = real.processor_seconds()
        assert before is not None
        assert used is not None
        # What else the machine does makes a server slower, and not its work larger.
        of_core = total / (used - before)
        progress.advance(
            f"capacity of a server: {capacity:.1f} texts a second, {of_core:.1f} of a core's time"
        )
        rows: list[Row] = []
        for share in SHARES:
            rate = share * server.capacity
            expected = server.expected(rate)
            arrivals = draw_arrivals(rate=rate, seconds=seconds, num_sentences=len(requests), seed=1)
            answered = run_open_loop(
                real.address, requests, arrivals, seconds=seconds, deadline_seconds=DEADLINE_SECONDS
            )
            rows.append(
                {
                    "share": share,
                    "rate": rate,
                    "expected_p50": 1000 * expected.p50_seconds,
                    "p50": 1000 * percentile(answered.latencies, 50),
                    "expected_p99": 1000 * expected.p99_seconds,
                    "p99": 1000 * percentile(answered.latencies, 99),
                    "failed": answered.num_failed,
                }
            )
            progress.advance(f"{rate:.0f} texts a second")
    Report(
        command=command_line("benchmarks.sizing"),
        results={
            "machine": machine,
            "bundle": manifest.key,
            "threads": threads,
            "are_apart": cores.are_apart,
            "expected_capacity": server.capacity,
            "capacity": capacity,
            "capacity_of_processor_second": of_core,
            "door_seconds": measured.server.door_seconds,
            "slowdown_of_all_cores": measured.slowdown,
            "rows": rows,
        },
        tables=[
            Table(
                title=f"Capacity: {server.capacity:.0f} texts a second expected, {capacity:.0f} measured, "
                f"{of_core * threads:.0f} by processor time",
                columns=(
                    Column(key="share", header="share", format=".0%"),
                    Column(key="rate", header="texts/s", format=".0f"),
                    Column(key="expected_p50", header="p50 expected, ms", format=".0f"),
                    Column(key="p50", header="p50 measured", format=".0f"),
                    Column(key="expected_p99", header="p99 expected, ms", format=".0f"),
                    Column(key="p99", header="p99 measured", format=".0f"),
                    Column(key="failed", header="failed", format="d"),
                ),
                rows=rows,
                note="Share: of the expected capacity. Latency counts from when a text was to arrive.",
            )
        ],
    ).publish(Console(highlight=False), json_path=json_path, markdown_path=markdown_path)


if __name__ == "__main__":
    sizing()
