"""`python -m benchmarks.limit`: options in, tables out."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from dragoman_bundle import Bundle, BundleError, open_bundle
from dragoman_bundle.manifest import SHORTLIST_STEP_GRAPH, STEP_GRAPH
from rich.console import Console

from benchmarks.corpus import read_corpus
from benchmarks.limit.inputs import step_sizes
from benchmarks.limit.measurement import limit_rows, measure, peak_rows
from benchmarks.limit.peaks import LARGE_BYTES, CopyPeak, ProductPeak, weight_sizes
from benchmarks.limit.profile import by_operator, profile_step, slowest
from benchmarks.limit.step import Step, StepGraph
from benchmarks.limit.tables import limit_table, node_table, operator_table, peak_table
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
    threads_option,
    whole_numbers,
)
from benchmarks.progress import Progress
from benchmarks.report import Report, Table

_SLOWEST_NODES = 15
_PRECISIONS = ("fp32", "int8")


@click.command(context_settings=CONTEXT)
@bundle_option
@click.option(
    "--sentences",
    default="1,2,4,8,16,32,64",
    show_default=True,
    callback=whole_numbers,
    help="Batch sizes of a step.",
)
@beam_option
@click.option(
    "--source-positions",
    default=16,
    show_default=True,
    type=click.IntRange(min=1),
    help="Source positions of a sentence, padding included.",
)
@input_option
@threads_option
@repeats_option
@click.option("--profile", is_flag=True, help="Also say where a step's time goes, by operator and by node.")
@json_option
@markdown_option
def limit(
    *,
    bundle: Path,
    sentences: list[int],
    beam: int,
    source_positions: int,
    source: Path,
    threads: int,
    repeats: int,
    profile: bool,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Compare a decoder step with what the machine's matrix product and memory reach in the same run.

    Every step graph of the bundle for the CPU is measured. --input only says how many candidates a sentence
    has, where the bundle has a shortlist.

    \b
      python -m benchmarks.limit --bundle models/de-en/1 --threads 2 --profile --json limit.json
    """
    machine = describe_machine()
    try:
        opened = open_bundle(bundle)
    except BundleError as error:
        raise click.ClickException(str(error)) from error
    paths = _graph_paths(opened)
    candidates = _mean_candidates(opened, source)
    vocabulary = min(opened.manifest.source_vocabulary, opened.manifest.target_vocabulary)
    progress = Progress(repeats)
    steps: dict[tuple[str, int], Step] = {}
    for name, path in paths.items():
        graph = StepGraph(path, vocabulary=vocabulary, threads=threads)
        for count in sentences:
            sizes = step_sizes(
                sentences=count, beam=beam, source_positions=source_positions, candidates=candidates
            )
            steps[name, count] = graph.at(sizes)
    with TemporaryDirectory() as folder, ExitStack() as stack:
        rows_of_largest = max(sentences) * beam
        kinds = {product.is_integer for step in steps.values() for product in step.products}
        weights = weight_sizes(product for step in steps.values() for product in step.products)
        peaks = {
            kind: ProductPeak(Path(folder), weights, rows=rows_of_largest, is_integer=kind, threads=threads)
            for kind in sorted(kinds)
        }
        copies = {key: CopyPeak(step.num_bytes, threads) for key, step in steps.items()}
        large = CopyPeak(LARGE_BYTES, threads)
        for copy in (large, *copies.values()):
            stack.callback(copy.close)
        measured = measure(steps, peaks, large, copies, repeats=repeats, progress=progress)
    rows = limit_rows(steps, measured, beam)
    peak = peak_rows(measured)
    profiles: dict[str, object] = {}
    tables: list[Table] = [peak_table(peak), limit_table(rows)]
    if profile:
        for name, path in paths.items():
            sizes = step_sizes(
                sentences=max(sentences), beam=beam, source_positions=source_positions, candidates=candidates
            )
            nodes = profile_step(path, vocabulary=vocabulary, threads=threads, sizes=sizes)
            operators, slow = by_operator(nodes), slowest(nodes, _SLOWEST_NODES)
            profiles[name] = {"operators": operators, "nodes": slow}
            tables += [
                operator_table(name, max(sentences), operators),
                node_table(name, max(sentences), slow),
            ]
    manifest = opened.manifest
    Report(
        command=command_line("benchmarks.limit"),
        results={
            "machine": machine,
            "bundle": manifest.key,
            "beam": beam,
            "threads": threads,
            "source_positions": source_positions,
            "repeats": repeats,
            "peaks": peak,
            "rows": rows,
            **({"profile": profiles} if profile else {}),
        },
        tables=tables,
    ).publish(Console(), json_path=json_path, markdown_path=markdown_path)


def _graph_paths(bundle: Bundle) -> dict[str, Path]:
    """The step graphs for a CPU, by what to call them. Raises ClickException where there is none."""
    present: Sequence[str] = [each for each in _PRECISIONS if each in bundle.manifest.precisions]
    if not present:
        has = ", ".join(bundle.manifest.precisions)
        raise click.ClickException(f"{bundle.path} has no graphs for the CPU, only {has}")
    paths = {precision: bundle.graph_path(precision, STEP_GRAPH) for precision in present}
    if bundle.shortlist is not None:
        for precision in present:
            paths[f"{precision}, shortlist"] = bundle.graph_path(precision, SHORTLIST_STEP_GRAPH)
    return paths


def _mean_candidates(bundle: Bundle, source: Path) -> int:
    """Candidates of a sentence of the file on average; 0 without a shortlist."""
    if bundle.shortlist is None:
        return 0
    lines = read_corpus(source, None, None).sources
    ids = [[*each, bundle.source_tokenizer.eos_id] for each in bundle.source_tokenizer.encode_ids(lines)]
    chosen = bundle.shortlist.candidates(ids)
    return round(sum(map(len, chosen)) / len(chosen))


if __name__ == "__main__":
    limit()
