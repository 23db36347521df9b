"""`python -m benchmarks.threads`: options in, a table out."""

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click
from dragoman_bundle import BundleError, open_bundle
from rich.console import Console

from benchmarks.corpus import read_corpus
from benchmarks.engines import SystemMissingError
from benchmarks.machine import describe_machine
from benchmarks.measuring import interleave, ratio, summarize
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
from benchmarks.report import Column, Report, Table
from benchmarks.threads.arrangements import Arranged, arrangements

COLUMNS = (
    Column(key="arrangement", header="engines x threads"),
    Column(key="sentences_per_second", header="sentences/s", format=",.1f"),
    Column(key="throughput_spread", header="spread", format=".0%"),
    Column(key="throughput_ratio", header="over 1 x 1", format=".2f"),
    Column(key="latency_ms", header="one sentence alone, median ms", format=",.1f"),
    Column(key="latency_spread", header="spread", format=".0%"),
    Column(key="latency_ratio", header="over 1 x 1", format=".2f"),
)


@click.command(context_settings=CONTEXT)
@bundle_option
@click.option("--precision", default="int8", show_default=True, help="Which of the bundle's graphs.")
@input_option
@limit_option
@beam_option
@threads_option
@click.option(
    "--alone",
    default=100,
    show_default=True,
    type=click.IntRange(min=1),
    help="Sentences, spread over the file, whose latency is measured one by one.",
)
@repeats_option
@json_option
@markdown_option
def threads_command(
    *,
    bundle: Path,
    precision: str,
    source: Path,
    limit: int | None,
    beam: int,
    threads: int,
    alone: int,
    repeats: int,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Spend the same cores in several ways: throughput of a whole file, and latency of one sentence alone.

    \b
      python -m benchmarks.threads --bundle models/de-en/1 --threads 2
    """
    machine = describe_machine()
    corpus = read_corpus(source, None, limit)
    lines = corpus.sources
    few = lines[:: max(1, len(lines) // alone)][:alone]
    with ExitStack() as stack:
        try:
            opened = open_bundle(bundle)
            arranged = {
                str(each): Arranged(stack, opened, each, precision=precision, beam_size=beam)
                for each in arrangements(threads)
            }
        except (BundleError, SystemMissingError) as error:
            raise click.ClickException(str(error)) from error
        for each in arranged.values():
            each.sentences_per_second(lines[:64])
        progress = Progress(2 * repeats * len(arranged))
        speeds = interleave(
            {name: partial(each.sentences_per_second, lines) for name, each in arranged.items()},
            repeats,
            lambda _, name, speed: progress.advance(f"{name}: {speed:,.1f} sentences/s"),
        )
        latencies = interleave(
            {name: partial(_median_ms, each, few) for name, each in arranged.items()},
            repeats,
            lambda _, name, found: progress.advance(f"{name}: {found:,.1f} ms"),
        )
    first = next(iter(arranged))
    rows = []
    for name in arranged:
        speed, latency = summarize(speeds[name]), summarize(latencies[name])
        rows.append(
            {
                "arrangement": name,
                "sentences_per_second": speed.median,
                "throughput_spread": speed.spread,
                "throughput_ratio": ratio(speeds[name], speeds[first]).median,
                "latency_ms": latency.median,
                "latency_spread": latency.spread,
                "latency_ratio": ratio(latencies[name], latencies[first]).median,
            }
        )
    Report(
        command=command_line("benchmarks.threads"),
        results={
            "machine": machine,
            "bundle": opened.manifest.key,
            "precision": precision,
            "input": corpus.name,
            "sentences": len(lines),
            "beam": beam,
            "repeats": repeats,
            "rows": rows,
        },
        tables=[
            Table(
                title=f"The same cores, spent in several ways: {precision}, beam {beam}",
                columns=COLUMNS,
                rows=rows,
                note="Engines have a batch each, and in processes of their own a decoder each; threads are "
                "those of a call. Ratios are the median of the repeats' own.",
            )
        ],
    ).publish(Console(), json_path=json_path, markdown_path=markdown_path)


def _median_ms(arranged: Arranged, lines: Sequence[str]) -> float:
    return 1e3 * statistics.median(arranged.latencies(lines))


if __name__ == "__main__":
    threads_command()
