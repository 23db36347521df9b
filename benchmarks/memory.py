"""`python -m benchmarks.memory`: what a model's engines take in memory, and how quickly they decode."""

import os
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

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
    whole_numbers,
)
from benchmarks.progress import Progress
from benchmarks.report import Column, Report, Table
from benchmarks.serve.server_process import running_server
from dragoman import Client
from dragoman_server.sizing.process_memory import memory_of

MIB = 2**20
IDLE_SECONDS = 5.0
"""By then an engine with nothing to do has given back what it does not need."""
COLUMNS = [
    Column(key="engines", header="engines", format="d"),
    Column(key="sharing", header="of a process"),
    Column(key="ready", header="MiB when ready", format=".0f"),
    Column(key="after", header="MiB after decoding", format=".0f"),
    Column(key="idle", header="MiB when idle again", format=".0f"),
    Column(key="times", header="times one engine's when idle", format=".2f"),
    Column(key="tokens", header="target tokens/s", format=".0f"),
]


@click.command(context_settings=CONTEXT)
@bundle_option
@input_option
@click.option("--limit", default=1000, show_default=True, type=click.IntRange(min=1), help="Sentences.")
@click.option("--engines", default="4", show_default=True, callback=whole_numbers, help="Beside one.")
@click.option("--max-output", default=50, show_default=True, help="Most output tokens of a sentence.")
@beam_option
@repeats_option
@json_option
@markdown_option
def main(
    bundle: Path,
    source: Path,
    limit: int,
    engines: list[int],
    max_output: int,
    beam: int,
    repeats: int,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Compare engines that share a process, and so the weights, with engines in processes of their own.

    Memory is that of all the server's processes, what they share counted once (PSS): Linux only. Each
    arrangement is measured in turn with the others.
    """
    machine = describe_machine()
    sources = read_corpus(source, None, limit).sources
    try:
        manifest = open_bundle(bundle).manifest
    except BundleError as error:
        raise click.ClickException(str(error)) from error
    arrangements: list[tuple[int, int | None]] = [(1, None)]
    arrangements += [each for number in engines for each in ((number, None), (number, number), (number, 1))]
    progress = Progress(repeats * len(arrangements))
    found: dict[tuple[int, int | None], list[tuple[float, ...]]] = defaultdict(list)
    for _ in range(repeats):
        for number, sharing in arrangements:
            with (
                running_server(
                    bundle,
                    manifest.key,
                    mode="continuous",
                    precision="auto",
                    threads=number,
                    max_beam_size=beam,
                    cores=tuple(os.sched_getaffinity(0)),
                    engines_per_process=sharing,
                ) as server,
                Client(server.address) as client,
            ):
                ready = memory_of(server.process_id).total / MIB
                began = time.perf_counter()
                translations = client.translate(
                    sources,
                    source=manifest.source_language,
                    target=manifest.target_language,
                    beam_size=beam,
                    max_output_tokens=max_output,
                    protect=False,
                    timeout_seconds=3600,
                )
                seconds = time.perf_counter() - began
                tokens = sum(each.target_tokens for each in translations)
                after = memory_of(server.process_id).total / MIB
                time.sleep(IDLE_SECONDS)
                idle = memory_of(server.process_id).total / MIB
                found[number, sharing].append((ready, after, idle, tokens / seconds))
                progress.advance(f"{number} engines, {sharing or 'as measured'}")
    alone = median(idle for _, _, idle, _ in found[1, None])
    rows = []
    for (number, sharing), runs in found.items():
        ready, after, idle, speed = (median(column) for column in zip(*runs, strict=True))
        rows.append(
            {
                "engines": number,
                "sharing": "as measured" if sharing is None else str(sharing),
                "ready": ready,
                "after": after,
                "idle": idle,
                "times": idle / alone,
                "tokens": speed,
            }
        )
    note = f"{limit} sentences, beam {beam}, at most {max_output} output tokens; medians of {repeats}."
    report = Report(
        command=command_line("benchmarks.memory"),
        results={"machine": machine, "rows": rows},
        tables=[Table(title="Memory by engines", columns=COLUMNS, rows=rows, note=note)],
    )
    report.publish(Console(), json_path=json_path, markdown_path=markdown_path)


if __name__ == "__main__":
    main()
