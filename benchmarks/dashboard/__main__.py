"""`python -m benchmarks.dashboard`: draws the dashboard from a live run, and tries what it estimates."""

import math
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from dragoman_bundle import open_bundle
from dragoman_bundle.copying import copy_bundle
from rich.console import Console

from benchmarks.corpus import read_corpus
from benchmarks.dashboard.drawing import draw
from benchmarks.dashboard.panels import Panel, read_annotations, read_panels
from benchmarks.dashboard.prometheus import Prometheus, running_prometheus
from benchmarks.machine import describe_machine
from benchmarks.options import (
    CONTEXT,
    beam_option,
    bundle_option,
    command_line,
    input_option,
    json_option,
    markdown_option,
    threads_option,
    whole_numbers,
)
from benchmarks.progress import Progress
from benchmarks.report import Column, Report, Table
from benchmarks.serve.arrivals import draw_arrivals
from benchmarks.serve.load import make_requests, run_open_loop
from benchmarks.serve.percentiles import percentile
from benchmarks.serve.server_process import ServerProcess, running_server
from dragoman.v1 import translation_pb2 as pb

SCRAPE_SECONDS = 1.0
RATE_INTERVAL = "25s"
QUESTIONS = ("Near capacity?", "Which stage?", "Is quality drifting?")
"""The rows that are drawn."""
CAPTION = (
    "Our own drawing of the queries of Grafana's dashboard, by `python -m benchmarks.dashboard`. {rates} "
    "requests/s in turn; dashed: a reload to a new version and a batch job; later some texts are damaged."
)
DEADLINE_SECONDS = 10.0
DAMAGED_SHARE = 0.3
COLUMNS = [
    Column(key="rate", header="requests/s", format="d"),
    Column(key="beside", header="beside"),
    Column(key="p50", header="p50, ms", format=".0f"),
    Column(key="p99", header="p99, ms", format=".0f"),
    Column(key="failed", header="failed", format="d"),
    Column(key="load", header="interactive load", format=".2f"),
    Column(key="estimate", header="p99 at 1 s, estimate, requests/s", format=".0f"),
]


@click.command(context_settings=CONTEXT)
@bundle_option
@input_option
@click.option(
    "--rates", default="4,8,16,24,32,40", show_default=True, callback=whole_numbers, help="Requests/s."
)
@click.option("--seconds", default=35.0, show_default=True, help="Of each rate.")
@beam_option
@threads_option
@click.option(
    "--out",
    "picture",
    default=Path("docs/pictures/dashboard.png"),
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The picture.",
)
@json_option
@markdown_option
def main(
    bundle: Path,
    source: Path,
    rates: list[int],
    seconds: float,
    beam: int,
    threads: int,
    picture: Path,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Put rising loads on a server that a real Prometheus scrapes, and draw what its dashboard shows.

    Halfway the model gets a new version, which is reloaded; from then on some texts are damaged, and a batch
    job runs beside the callers at one rate. Each rate's end has its line: what callers saw, and what was
    estimated that they could send.
    """
    manifest = open_bundle(bundle).manifest
    requests = make_requests(
        read_corpus(source, None, None).sources,
        source=manifest.source_language,
        target=manifest.target_language,
        beam_size=beam,
    )
    panels = [panel for panel in read_panels(RATE_INTERVAL) if panel.row in QUESTIONS]
    progress = Progress(len(rates))
    rows: list[dict[str, object]] = []
    half = len(rates) // 2
    with (
        TemporaryDirectory(prefix="dragoman-dashboard-") as folder,
        running_server(
            bundle,
            manifest.key,
            mode="continuous",
            precision="auto",
            threads=threads,
            max_beam_size=beam,
            cores=tuple(os.sched_getaffinity(0)),
        ) as server,
        running_prometheus(server.metrics_address, Path(folder), scrape_seconds=SCRAPE_SECONDS) as prometheus,
    ):
        begin = time.time()
        for number, rate in enumerate(rates):
            has_job, is_damaged = number == half, number > half
            if has_job:
                _renew(bundle, server)
            answered = run_open_loop(
                server.address,
                _damaged(requests) if is_damaged else requests,
                draw_arrivals(rate=rate, seconds=seconds, num_sentences=len(requests), seed=number),
                seconds=seconds,
                deadline_seconds=DEADLINE_SECONDS,
                bulk_streams=int(has_job),
            )
            rows.append(
                {
                    "rate": rate,
                    "beside": "a batch job" if has_job else "",
                    "p50": percentile(answered.latencies, 50) * 1000,
                    "p99": percentile(answered.latencies, 99) * 1000,
                    "failed": answered.num_failed,
                    "load": _now(prometheus, panels, "interactive load"),
                    "estimate": _now(prometheus, panels, "p99 at 1 s, estimate"),
                }
            )
            progress.advance(f"{rate} requests/s")
        end = time.time()
        [reloads] = read_annotations(RATE_INTERVAL)
        moments = {
            value / 1000
            for series in prometheus.query_range(reloads, begin, end, SCRAPE_SECONDS)
            for value in series.values
        }
        draw(
            panels,
            prometheus,
            begin=begin,
            end=end,
            step_seconds=SCRAPE_SECONDS,
            marks=[moment for moment in moments if moment > begin],
            caption=CAPTION.format(rates=", ".join(map(str, rates))),
            path=picture,
        )
    report = Report(
        command=command_line("benchmarks.dashboard"),
        results={"machine": describe_machine(), "rows": rows},
        tables=[
            Table(title="Callers, and what the dashboard says", columns=COLUMNS, rows=rows, note=str(picture))
        ],
    )
    report.publish(Console(), json_path=json_path, markdown_path=markdown_path)


def _renew(bundle: Path, server: ServerProcess) -> None:
    """The same model again, as another version."""
    manifest = open_bundle(bundle).manifest
    copy_bundle(bundle, server.models / manifest.name / f"{int(manifest.version) + 1}")
    server.reload()


def _damaged(requests: list[pb.TranslateRequest]) -> list[pb.TranslateRequest]:
    """Some of the texts backwards, letter by letter."""
    every = round(1 / DAMAGED_SHARE)
    changed = []
    for number, request in enumerate(requests):
        copy = pb.TranslateRequest()
        copy.CopyFrom(request)
        if number % every == 0:
            copy.texts[:] = [text[::-1] for text in request.texts]
        changed.append(copy)
    return changed


def _now(prometheus: Prometheus, panels: list[Panel], what: str) -> float | None:
    """The largest of those that are called so: a version that nobody calls has none."""
    found = [
        series.values[0]
        for panel in panels
        for target in panel.targets
        for series in prometheus.query(target.expression)
        if target.name(series.labels).endswith(what) and math.isfinite(series.values[0])
    ]
    return max(found, default=None)


if __name__ == "__main__":
    main()
