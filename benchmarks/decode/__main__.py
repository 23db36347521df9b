"""`python -m benchmarks.decode`: options in, tables out."""

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path

import click
from dragoman_bundle import Bundle, BundleError, open_bundle
from rich.console import Console
from sacrebleu.metrics.bleu import BLEU

from benchmarks.corpus import Corpus, read_corpus
from benchmarks.decode.aims import compare
from benchmarks.decode.host_share import measure_host_share
from benchmarks.decode.systems import SYSTEMS, Case, Systems, Translated
from benchmarks.decode.tables import host_table, ratio_table, speed_table
from benchmarks.engines import SystemMissingError, open_decoder
from benchmarks.machine import describe_machine
from benchmarks.measuring import interleave, summarize
from benchmarks.options import (
    CONTEXT,
    DEFAULT_INPUT,
    bundle_option,
    command_line,
    input_option,
    json_option,
    limit_option,
    markdown_option,
    repeats_option,
    whole_numbers,
)
from benchmarks.progress import Progress
from benchmarks.report import Report
from dragoman_training.checkpoint import CheckpointError

_DEFAULT_REFERENCE = DEFAULT_INPUT.with_suffix(".en")
_WARMING_SENTENCES = 16
_PROFILED = {"engine_int8": False, "engine_int8_shortlist": True}


def _chosen_systems(context: click.Context, parameter: click.Parameter, value: str) -> list[str]:
    names = value.split(",")
    if unknown := [name for name in names if name not in SYSTEMS]:
        raise click.BadParameter(f"there is no system {unknown[0]!r}; there are {', '.join(SYSTEMS)}")
    return names


@click.command(context_settings=CONTEXT)
@bundle_option
@click.option(
    "--checkpoint",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The checkpoint that the bundle was exported from; the two PyTorch systems need it.",
)
@input_option
@click.option(
    "--reference",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Its translation, line by line, for BLEU.  "
    f"[default: {_DEFAULT_REFERENCE} of the default input; of another none, and no BLEU]",
)
@limit_option
@click.option(
    "--systems",
    default=",".join(SYSTEMS),
    show_default=True,
    callback=_chosen_systems,
    help="Which systems to compare.",
)
@click.option("--beams", default="1,5", show_default=True, callback=whole_numbers, help="Beam sizes.")
@click.option("--threads", default="1,2", show_default=True, callback=whole_numbers, help="CPU threads.")
@repeats_option
@click.option("--profile", is_flag=True, help="Also say how much wall time passes outside onnxruntime.")
@json_option
@markdown_option
def decode(
    *,
    bundle: Path,
    checkpoint: Path | None,
    source: Path,
    reference: Path | None,
    limit: int | None,
    systems: list[str],
    beams: list[int],
    threads: list[int],
    repeats: int,
    profile: bool,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Translate a whole file with each of several systems, in turn, and compare their speed and BLEU.

    \b
      tutorial               PyTorch, a sentence and a token at a time, greedy
      torch_batched          PyTorch, batched beam search
      onnx_static            ONNX fp32, a batch ends before the next begins
      engine_fp32            the engine, fp32
      engine_int8            the engine, int8
      engine_int8_shortlist  the engine, int8 with a lexical shortlist

    What is missing (a checkpoint, a precision, a shortlist) leaves its systems out.

    \b
      python -m benchmarks.decode --bundle models/m30k/1 --checkpoint runs/m30k/best.safetensors
      python -m benchmarks.decode --bundle models/de-en/1 --systems engine_int8 --limit 100 --profile
    """
    machine = describe_machine()
    if reference is None and source == DEFAULT_INPUT:
        reference = _DEFAULT_REFERENCE
    corpus = read_corpus(source, reference, limit)
    try:
        opened = open_bundle(bundle)
        running = Systems(opened, checkpoint)
        cases, skipped = _open_all(running, systems, beams, threads, corpus)
    except (BundleError, CheckpointError) as error:
        raise click.ClickException(str(error)) from error
    progress = Progress(len(cases) * repeats)

    def on_done(repeat: int, case: Case, result: Translated) -> None:
        progress.advance(f"{case}: {corpus.num_words / result.seconds:,.0f} words/s")

    runs = interleave(
        {case: partial(running.translate, case, corpus.sources) for case in cases}, repeats, on_done
    )
    rows = [_row(case, results, corpus) for case, results in runs.items()]
    ratios = compare(rows)
    hosts = _host_rows(opened, systems, beams, corpus, repeats) if profile else []
    tables = [speed_table(rows, corpus.name, len(corpus.sources), repeats), ratio_table(ratios)]
    Report(
        command=command_line("benchmarks.decode"),
        results={
            "machine": machine,
            "input": corpus.name,
            "sentences": len(corpus.sources),
            "words": corpus.num_words,
            "repeats": repeats,
            "bundle": opened.manifest.key,
            "rows": rows,
            "ratios": ratios,
            "skipped": skipped,
            **({"host": hosts} if profile else {}),
        },
        tables=[*tables, host_table(hosts)] if profile else tables,
    ).publish(Console(), json_path=json_path, markdown_path=markdown_path)


def _open_all(
    systems: Systems, names: Sequence[str], beams: Sequence[int], threads: Sequence[int], corpus: Corpus
) -> tuple[list[Case], dict[str, str]]:
    """The cases that can be run, each opened and warm, and why the others cannot."""
    cases, skipped = [], {}
    console = Console(stderr=True, highlight=False)
    for num_threads in threads:
        for beam in beams:
            for name in names:
                case = Case(system=name, beam=beam, threads=num_threads)
                try:
                    systems.open(case)
                except SystemMissingError as error:
                    skipped[str(case)] = str(error)
                    console.print(f"left out: {case}: {error}")
                    continue
                systems.translate(case, corpus.sources[:_WARMING_SENTENCES])
                cases.append(case)
    if not cases:
        raise click.ClickException(
            "no system is left to measure; the lines above say what each of them needs"
        )
    return cases, skipped


def _row(case: Case, results: Sequence[Translated], corpus: Corpus) -> dict[str, object]:
    speed = summarize([corpus.num_words / result.seconds for result in results])
    bleu = None
    if corpus.references is not None:
        bleu = BLEU().corpus_score(results[0].lines, [corpus.references]).score
    return {
        "system": case.system,
        "beam": case.beam,
        "threads": case.threads,
        "words_per_second": speed.median,
        "sentences_per_second": speed.median * len(corpus.sources) / corpus.num_words,
        "bleu": bleu,
        "spread": speed.spread,
        "seconds": [result.seconds for result in results],
    }


def _host_rows(
    bundle: Bundle,
    systems: Sequence[str],
    beams: Sequence[int],
    corpus: Corpus,
    repeats: int,
) -> list[dict[str, object]]:
    """Of each case the repeat whose share is the median."""
    rows: list[dict[str, object]] = []
    for system in [name for name in systems if name in _PROFILED]:
        try:
            decoder = open_decoder(bundle, precision="int8", shortlist=_PROFILED[system])
        except SystemMissingError:
            continue
        for beam in beams:
            measured = sorted(
                (measure_host_share(bundle, decoder, corpus.sources, beam) for _ in range(repeats)),
                key=itemgetter("outside_share"),
            )[repeats // 2]
            rows.append({"system": system, "beam": beam, **measured})
    return rows


if __name__ == "__main__":
    decode()
