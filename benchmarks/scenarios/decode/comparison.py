"""The systems in turns: their speed, their BLEU, and their ratios beside the aims."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from dragoman_bundle import open_bundle
from sacrebleu.metrics.bleu import BLEU

from benchmarks.corpus import Corpus, read_corpus
from benchmarks.harness import (
    BUNDLE,
    DEFAULT_INPUT,
    FILE,
    INPUT,
    LIMIT,
    REPEATS,
    Found,
    option,
    scenario,
    several,
)
from benchmarks.measuring import MeasurementError, in_turns, ratio, say, summarize
from benchmarks.report import Row, Table
from benchmarks.scenarios.decode.systems import SYSTEMS, Case, Systems, Translated
from dragoman_training.checkpoint import CheckpointError

WARMING_SENTENCES = 16
AIMS: Sequence[tuple[str, str, float]] = (
    ("engine_int8_shortlist", "torch_batched", 8.0),
    ("engine_int8", "engine_fp32", 2.5),
    ("engine_int8_wide", "engine_int8", 1.0),
    ("engine_fp16", "engine_fp32", 1.0),
)
"""A system, one that it is compared with, and how much faster it is to be."""


@scenario(
    BUNDLE,
    option("--checkpoint", None, "Checkpoint of the bundle; torch_batched needs it.", type=FILE),
    INPUT,
    option(
        "--reference",
        None,
        "The input's translation, for BLEU.  [default: that of the default input]",
        type=FILE,
    ),
    LIMIT,
    several("--systems", tuple(SYSTEMS), "Which systems to compare.", SYSTEMS),
    several("--beams", (1, 5), "Beam sizes."),
    several("--threads", (1, 2), "CPU threads."),
    option("--device", "cpu", "Where the engine runs.", type=click.Choice(["cpu", "cuda"])),
    REPEATS,
)
def command(
    *,
    bundle: Path,
    checkpoint: Path | None,
    source: Path,
    reference: Path | None,
    limit: int | None,
    systems: list[str],
    beams: list[int],
    threads: list[int],
    device: str,
    repeats: int,
) -> Found:
    """Translate a whole file with each of several systems, in turn, and compare their speed and BLEU.

    \b
      torch_batched          PyTorch, batched beam search
      onnx_static            ONNX fp32, a batch ends before the next begins
      engine_fp32            the engine, fp32: one for each thread
      engine_int8            the engine, int8
      engine_int8_wide       the engine, int8: a single one, whose calls have all threads
      engine_int8_shortlist  the engine, int8 with a lexical shortlist
      engine_fp16            the engine on a GPU, fp16

    What is missing (a checkpoint, a precision, a shortlist) leaves its systems out.
    """
    if reference is None and source == DEFAULT_INPUT:
        reference = DEFAULT_INPUT.with_suffix(".en")
    corpus = read_corpus(source, reference, limit)
    opened = open_bundle(bundle)
    try:
        running = Systems(opened, checkpoint, device)
    except CheckpointError as error:
        raise MeasurementError(str(error)) from error
    cases, skipped = _open_all(running, systems, beams, threads, corpus)
    runs = in_turns(
        {case: partial(running.translate, case, corpus.sources) for case in cases},
        repeats,
        lambda done: f"{corpus.num_words / done.seconds:,.0f} words/s",
    )
    rows = [_row(case, results, corpus) for case, results in runs.items()]
    tables = [
        Table(
            name="rows",
            title=f"{corpus.name}, {len(corpus.sources):,} sentences, median of {repeats}",
            columns=[
                ("system", "system"),
                ("beam", "beam", "d"),
                ("threads", "threads", "d"),
                ("words_per_second", "words/s", ",.0f"),
                ("sentences_per_second", "sentences/s", ",.1f"),
                ("spread", "spread", ".0%"),
                ("bleu", "BLEU", ".2f"),
            ],
            rows=rows,
            note="Words are those of the input. From text to text: tokenizing and joining are in the time. "
            "Spread: fastest less slowest repeat, as a share of the median.",
        ),
        _ratio_table(rows),
    ]
    facts = {"bundle": opened.manifest.key, "input": corpus.name, "repeats": repeats, "device": device}
    return Found(tables=tables, facts={**facts, "skipped": skipped})


def _open_all(
    systems: Systems, names: Sequence[str], beams: Sequence[int], threads: Sequence[int], corpus: Corpus
) -> tuple[list[Case], dict[str, str]]:
    """The cases that can be run, each opened and warm, and why the others cannot."""
    cases, skipped = [], {}
    for case in [Case(name, beam, number) for number in threads for beam in beams for name in names]:
        try:
            systems.open(case)
        except MeasurementError as error:
            skipped[str(case)] = str(error)
            say(f"left out: {case}: {error}")
            continue
        systems.translate(case, corpus.sources[:WARMING_SENTENCES])
        cases.append(case)
    if not cases:
        raise click.ClickException(
            "no system is left to measure; the lines above say what each of them needs"
        )
    return cases, skipped


def _row(case: Case, results: Sequence[Translated], corpus: Corpus) -> dict[str, Any]:
    speed = summarize([corpus.num_words / result.seconds for result in results])
    bleu = None
    if corpus.references is not None:
        bleu = BLEU().corpus_score(results[0].lines, [corpus.references]).score
    return {
        **vars(case),
        "words_per_second": speed.median,
        "sentences_per_second": speed.median * len(corpus.sources) / corpus.num_words,
        "bleu": bleu,
        "spread": speed.spread,
        "seconds": [result.seconds for result in results],
    }


def _ratio_table(rows: Sequence[Row]) -> Table:
    """The ratios of speed for which both systems were measured, and the differences in BLEU."""
    by_case: Mapping[Any, Row] = {(row["system"], row["beam"], row["threads"]): row for row in rows}
    ratios: list[Row] = []
    for system, other, aim in AIMS:
        for row in [row for row in rows if row["system"] == system]:
            against = by_case.get((other, row["beam"], row["threads"]))
            if against is None:
                continue
            measured = ratio(against["seconds"], row["seconds"])
            has_bleu = row["bleu"] is not None and against["bleu"] is not None
            ratios.append(
                {
                    "name": f"{system} over {other}",
                    "beam": row["beam"],
                    "threads": row["threads"],
                    "value": measured.median,
                    "spread": measured.spread,
                    "aim": aim,
                    "bleu": row["bleu"] - against["bleu"] if has_bleu else None,
                }
            )
    return Table(
        name="ratios",
        title="Ratios",
        columns=[
            ("name", "ratio"),
            ("beam", "beam", "d"),
            ("threads", "threads", "d"),
            ("value", "measured", ".2f"),
            ("spread", "spread", ".0%"),
            ("aim", "aim", "g"),
            ("bleu", "BLEU less", "+.2f"),
        ],
        rows=ratios,
        note="Each ratio is the median of the repeats' own: what disturbs the machine for a while disturbs "
        "both sides. The aims are for beam 5 and 2 threads.",
    )
