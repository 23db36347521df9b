"""`python -m benchmarks.serve`: options in, tables out."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import click
from dragoman_bundle import BundleError, open_bundle
from rich.console import Console

from benchmarks.corpus import read_corpus
from benchmarks.machine import describe_machine
from benchmarks.measuring import ratio
from benchmarks.options import (
    CONTEXT,
    beam_option,
    bundle_option,
    command_line,
    input_option,
    json_option,
    limit_option,
    markdown_option,
    repeats_option,
    threads_option,
)
from benchmarks.progress import Progress
from benchmarks.report import Report
from benchmarks.serve.cores import Cores, pinned_to, share_out
from benchmarks.serve.load import make_requests
from benchmarks.serve.measurement import CONTINUOUS, FILE, JOB, OFFLINE, Measurement
from benchmarks.serve.offline import OfflineEngine
from benchmarks.serve.server_process import running_server
from benchmarks.serve.tables import aim_table, aims, bulk_table, capacity_table, latency_table
from dragoman_server.config import Precision
from dragoman_server.engine import EngineError
from dragoman_server.sizing.child_server import ServerError

MODES = (CONTINUOUS, "request")


def _chosen_loads(context: click.Context, parameter: click.Parameter, value: str) -> list[float]:
    try:
        loads = [float(part) / 100 for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of percentages such as 25,50") from None
    if min(loads) <= 0:
        raise click.BadParameter(f"{100 * min(loads):g} is no load; it must be above 0")
    return loads


@click.command(context_settings=CONTEXT)
@bundle_option
@click.option(
    "--precision",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "fp32", "int8"]),
    help="Which of the bundle's graphs the server runs.",
)
@input_option
@limit_option
@beam_option
@threads_option
@click.option(
    "--loads",
    default="25,50,75,90",
    show_default=True,
    callback=_chosen_loads,
    help="Loads, in percent of the capacity of continuous batching.",
)
@click.option(
    "--bulk-streams",
    default=4,
    show_default=True,
    type=click.IntRange(min=1),
    help="Batch jobs beside which callers are measured.",
)
@click.option(
    "--bulk-load",
    default=25.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    help="Load of those callers, in percent of the capacity of continuous batching.",
)
@click.option(
    "--seconds",
    default=15.0,
    show_default=True,
    type=click.FloatRange(min=0.1),
    help="Length of one run at one load.",
)
@click.option(
    "--saturation-sentences",
    default=2000,
    show_default=True,
    type=click.IntRange(min=1),
    help="Sentences of one measurement of capacity; the file is begun again where it ends before.",
)
@click.option(
    "--concurrency",
    default=256,
    show_default=True,
    type=click.IntRange(min=1),
    help="Callers at a time while capacity is measured.",
)
@click.option(
    "--deadline",
    "deadline_seconds",
    default=30.0,
    show_default=True,
    type=click.FloatRange(min=0.1),
    help="Seconds after which a caller gives up.",
)
@click.option(
    "--objective-ms",
    default=250.0,
    show_default=True,
    type=click.FloatRange(min=0, min_open=True),
    help="Milliseconds within which an answer counts as goodput.",
)
@repeats_option
@json_option
@markdown_option
def serve(
    *,
    bundle: Path,
    precision: Precision,
    source: Path,
    limit: int | None,
    beam: int,
    threads: int,
    loads: list[float],
    bulk_streams: int,
    bulk_load: float,
    seconds: float,
    saturation_sentences: int,
    concurrency: int,
    deadline_seconds: float,
    objective_ms: float,
    repeats: int,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Put a Poisson load on a real server and compare continuous with request-level batching.

    Capacity is measured first, with as many callers as keep the server busy; then latency, at shares of it,
    and at last beside batch jobs.
    The server gets as many cores as it has threads, and the load comes from the others, where there are any.

    \b
      python -m benchmarks.serve --bundle models/de-en/1 --json serve.json --markdown serve.md
      python -m benchmarks.serve --bundle models/de-en/1 --loads 75 --seconds 5 --repeats 2
    """
    machine = describe_machine()
    corpus = read_corpus(source, None, limit)
    cores = share_out(threads)
    try:
        opened = open_bundle(bundle)
        manifest = opened.manifest
        offline = OfflineEngine(
            opened, precision=precision, threads=threads, beam_size=beam, cores=cores.server
        )
    except (BundleError, EngineError) as error:
        raise click.ClickException(str(error)) from error
    progress = Progress(repeats * (len(MODES) + 3 + len(MODES) * len(loads) + 2))
    if not cores.are_apart:
        progress.say(f"server and load share {len(cores.server)} cores: figures are worse than the server is")
    requests = make_requests(
        corpus.sources, source=manifest.source_language, target=manifest.target_language, beam_size=beam
    )
    try:
        with ExitStack() as stack:
            stack.callback(offline.close)
            servers = {
                mode: stack.enter_context(
                    running_server(
                        bundle,
                        manifest.key,
                        mode=mode,
                        precision=precision,
                        threads=threads,
                        max_beam_size=beam,
                        cores=cores.server,
                    )
                )
                for mode in MODES
            }
            stack.enter_context(pinned_to(cores.generator))
            measurement = Measurement(servers, offline, corpus, requests, progress)
            # Whatever is allocated at first use is there before anything counts.
            measurement.warm(min(saturation_sentences, concurrency))
            capacity = measurement.capacity(
                total=saturation_sentences, concurrency=concurrency, repeats=repeats
            )
            rates = {load: load * capacity[CONTINUOUS].median for load in loads}
            rows = measurement.latency(
                rates,
                seconds=seconds,
                deadline_seconds=deadline_seconds,
                objective_seconds=objective_ms / 1000,
                repeats=repeats,
            )
            beside_bulk = measurement.beside_bulk(
                CONTINUOUS,
                bulk_load / 100 * capacity[CONTINUOUS].median,
                streams=bulk_streams,
                seconds=seconds,
                deadline_seconds=deadline_seconds,
                repeats=repeats,
            )
    except ServerError as error:
        raise click.ClickException(str(error)) from error
    medians = {case: summary.median for case, summary in capacity.items()}
    served_over_offline = ratio(capacity[CONTINUOUS].values, capacity[OFFLINE].values)
    file_over_offline = ratio(capacity[FILE].values, capacity[OFFLINE].values)
    job_over_offline = ratio(capacity[JOB].values, capacity[OFFLINE].values)
    found = aims(capacity, rows, beside_bulk, served_over_offline, file_over_offline, job_over_offline)
    Report(
        command=command_line("benchmarks.serve"),
        results={
            "machine": machine,
            "bundle": manifest.key,
            "precision": offline.precision,
            "input": corpus.name,
            "sentences": len(corpus.sources),
            "beam": beam,
            "threads": threads,
            "objective_ms": objective_ms,
            "repeats": repeats,
            "cores": _describe(cores),
            "capacity": medians,
            "capacity_spread": {case: summary.spread for case, summary in capacity.items()},
            "rows": rows,
            "beside_bulk": {"load": bulk_load / 100, "rows": beside_bulk},
            "served_over_offline": served_over_offline.median,
            "file_over_offline": file_over_offline.median,
            "job_over_offline": job_over_offline.median,
            "aims": found,
        },
        tables=[
            capacity_table(capacity, saturation_sentences),
            latency_table(rows, seconds, objective_ms),
            bulk_table(beside_bulk, bulk_load / 100, seconds),
            aim_table(found),
        ],
    ).publish(Console(), json_path=json_path, markdown_path=markdown_path)


def _describe(cores: Cores) -> Mapping[str, object]:
    return {"server": list(cores.server), "generator": list(cores.generator), "apart": cores.are_apart}


if __name__ == "__main__":
    serve()
