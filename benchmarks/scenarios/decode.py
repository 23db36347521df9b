"""How fast a whole file is translated: PyTorch, plain ONNX and the engine side by side."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import torch
from dragoman_bundle import Bundle, open_bundle
from sacrebleu.metrics.bleu import BLEU

from benchmarks.corpus import Corpus, read_corpus
from benchmarks.engines import open_decoder, running_system
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
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_training.checkpoint import CheckpointError, load_checkpoint
from dragoman_training.decoding.translator import Translator

WARMING_SENTENCES = 16
AIMS: Sequence[tuple[str, str, float]] = (
    ("engine_int8_shortlist", "torch_batched", 8.0),
    ("engine_int8", "engine_fp32", 2.5),
    ("engine_int8_wide", "engine_int8", 1.0),
    ("engine_fp16", "engine_fp32", 1.0),
)
"""A system, one that it is compared with, and how much faster it is to be."""


@dataclass(frozen=True)
class Graphs:
    """How the engine runs as a system."""

    precision: str
    shortlist: bool = False
    is_wide: bool = False
    """Whether there is a single engine whose calls have all threads, and not one for each thread."""
    is_continuous: bool = True


SYSTEMS = {
    "torch_batched": None,
    "onnx_static": Graphs("fp32", is_wide=True, is_continuous=False),
    "engine_fp32": Graphs("fp32"),
    "engine_int8": Graphs("int8"),
    "engine_int8_wide": Graphs("int8", is_wide=True),
    "engine_int8_shortlist": Graphs("int8", shortlist=True),
    "engine_fp16": Graphs("fp16"),
}
"""The systems in the order of the table; `--help` says what each is. None: in PyTorch."""


@dataclass(frozen=True)
class Case:
    """One system in one setting."""

    system: str
    beam: int
    threads: int

    def __str__(self) -> str:
        return f"{self.system}, beam {self.beam}, threads {self.threads}"


@dataclass(frozen=True)
class Translated:
    """A file that was translated."""

    seconds: float
    lines: list[str]


class Systems:
    """Opens what each case needs, once."""

    def __init__(self, bundle: Bundle, checkpoint: Path | None, device: str) -> None:
        """`device`: where the engine runs. Raises CheckpointError for a checkpoint that is none."""
        self._bundle = bundle
        self._device = device
        self._checkpoint = None if checkpoint is None else load_checkpoint(checkpoint)
        self._decoders: dict[tuple[Graphs, int], OnnxDecoder] = {}

    def open(self, case: Case) -> None:
        """Opens the case's model. Raises MeasurementError where there is nothing to open."""
        if (graphs := SYSTEMS[case.system]) is None:
            if self._checkpoint is None:
                raise MeasurementError("it needs a checkpoint of training: give --checkpoint")
        elif graphs.is_wide and case.threads == 1 and graphs.is_continuous:
            raise MeasurementError("with one thread it is the engine as ever")
        elif graphs.precision == "fp16" and self._device == "cpu":
            raise MeasurementError("it runs on a GPU: give --device cuda")
        elif (graphs, case.threads) not in self._decoders:
            self._decoders[graphs, case.threads] = open_decoder(
                self._bundle,
                precision=graphs.precision,
                num_threads=case.threads if graphs.is_wide else 1,
                shortlist=graphs.shortlist,
                device=self._device,
            )

    def translate(self, case: Case, lines: Sequence[str]) -> Translated:
        """Translates with an opened case, from text to text."""
        if (graphs := SYSTEMS[case.system]) is not None:
            with running_system(
                self._bundle,
                self._decoders[graphs, case.threads],
                beam_size=case.beam,
                threads=1 if graphs.is_wide else case.threads,
                continuous=graphs.is_continuous,
            ) as system:
                started = time.perf_counter()
                translations = system.translate(lines)
                return Translated(time.perf_counter() - started, translations)
        assert self._checkpoint is not None
        torch.set_num_threads(case.threads)
        checkpoint = self._checkpoint
        decoding = dataclasses.replace(checkpoint.recipe.decoding, beam_size=case.beam)
        tokenizers = checkpoint.source_tokenizer, checkpoint.target_tokenizer
        translator = Translator(checkpoint.model, *tokenizers, decoding)
        started = time.perf_counter()
        translations = translator.translate(lines)
        return Translated(time.perf_counter() - started, translations)


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
