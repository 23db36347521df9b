"""`python -m benchmarks.shortlist`: what shortlists cost in BLEU and bring in speed."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np
from dragoman_bundle import Bundle, open_bundle
from dragoman_bundle.copying import copy_bundle
from dragoman_bundle.manifest import SHORTLIST_FILE
from dragoman_bundle.shortlist import Shortlist
from dragoman_bundle.writer import seal
from rich.console import Console
from sacrebleu.metrics.bleu import BLEU

from benchmarks.corpus import read_corpus
from benchmarks.engines import open_decoder, running_system
from benchmarks.machine import describe_machine
from benchmarks.measuring import interleave, ratio, summarize
from benchmarks.options import (
    CONTEXT,
    beam_option,
    bundle_option,
    command_line,
    json_option,
    limit_option,
    markdown_option,
    repeats_option,
    threads_option,
    whole_numbers,
)
from benchmarks.progress import Progress
from benchmarks.report import Column, Report, Row, Table
from dragoman_export.shortlist.builder import ShortlistOptions, make_shortlist
from dragoman_server.offline.system import BundleSystem
from dragoman_training.alignment.pieces.counting import count_links
from dragoman_training.alignment.pieces.learning import learn_table
from dragoman_training.alignment.pieces.table import TranslationTable
from dragoman_training.alignment.saved import load_aligner
from dragoman_training.data.corpus import Corpus, read_parallel
from dragoman_training.data.training_corpus import token_pairs

NONE, PIECES = "no shortlist", "pieces, ibm1"
MAX_TOKENS = 100
COLUMNS = [
    Column(key="of", header="of"),
    Column(key="max_targets", header="targets", format="d"),
    Column(key="candidates", header="candidates a sentence", format=".0f"),
    Column(key="covered", header="reference tokens covered, %", format=".2f"),
    Column(key="whole", header="references covered whole, %", format=".1f"),
    Column(key="bleu", header="BLEU", format=".2f"),
    Column(key="changed", header="lines changed", format="d"),
    Column(key="sentences", header="sentences/s", format=".0f"),
    Column(key="times", header="times as fast", format=".2f"),
]


@click.command(context_settings=CONTEXT)
@bundle_option
@click.option(
    "--train",
    nargs=2,
    required=True,
    metavar="SOURCE TARGET",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The pairs that shortlists are learnt from.",
)
@click.option(
    "--test",
    nargs=2,
    required=True,
    metavar="SOURCE TARGET",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What is translated, and its references.",
)
@click.option(
    "--aligner",
    "aligners",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A saved aligner, whose links of words make a shortlist, too. Repeatable.",
)
@click.option("--targets", default="10,20,50,100", show_default=True, callback=whole_numbers, help="Sizes.")
@beam_option
@threads_option
@limit_option
@repeats_option
@json_option
@markdown_option
def shortlist(
    *,
    bundle: Path,
    train: tuple[Path, Path],
    test: tuple[Path, Path],
    aligners: tuple[Path, ...],
    targets: list[int],
    beam: int,
    threads: int,
    limit: int | None,
    repeats: int,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Decode in int8 without a shortlist and with each of several, in turn.

    \b
      python -m benchmarks.shortlist --train data/tatoeba-de-en/train.de data/tatoeba-de-en/train.en \\
        --test data/tatoeba-de-en/val.de data/tatoeba-de-en/val.en --aligner runs/align-de-en
    """
    machine = describe_machine()
    opened = open_bundle(bundle)
    corpus = read_corpus(test[0], test[1], limit)
    assert corpus.references is not None
    tables = {PIECES: _learn(opened, read_parallel(*train))}
    for folder in aligners:
        tables[f"words, {load_aligner(folder).name}"] = _count(opened, read_parallel(*train), folder)
    cases: dict[tuple[str, int], Callable[[], tuple[list[str], float]]] = {}
    rows: dict[tuple[str, int], Row] = {}
    progress = Progress(repeats * (1 + len(tables) * len(targets)))
    with ExitStack() as stack:
        parent = Path(stack.enter_context(TemporaryDirectory()))

        def serve(key: tuple[str, int], own: Bundle, *, with_shortlist: bool) -> None:
            decoder = open_decoder(own, precision="int8", shortlist=with_shortlist)
            system = stack.enter_context(running_system(own, decoder, beam_size=beam, threads=threads))
            cases[key] = partial(_translate, system, list(corpus.sources))

        serve((NONE, 0), opened, with_shortlist=False)
        rows[NONE, 0] = {"of": NONE}
        count = _frequencies(opened, read_parallel(*train))
        for name, table in tables.items():
            for number in targets:
                options = ShortlistOptions(max_targets=number)
                made = make_shortlist(table, count, opened.source_tokenizer, opened.target_tokenizer, options)
                own = _with_shortlist(opened, made, parent / f"m{len(rows)}" / "1")
                serve((name, number), own, with_shortlist=True)
                rows[name, number] = {
                    "of": name,
                    "max_targets": number,
                    **_coverage(opened, made, corpus.sources, corpus.references),
                }
        found = interleave(
            cases,
            repeats,
            lambda repeat, key, result: progress.advance(f"{key[0]} {key[1] or ''}: {result[1]:.1f} s"),
        )
    plain = found[NONE, 0]
    for key, results in found.items():
        texts = results[0][0]
        seconds = [seconds for _, seconds in results]
        rows[key] = {
            **rows[key],
            "bleu": BLEU().corpus_score(texts, [list(corpus.references)]).score,
            "changed": sum(one != other for one, other in zip(texts, plain[0][0], strict=True)),
            "sentences": len(texts) / summarize(seconds).median,
            "times": ratio([seconds for _, seconds in plain], seconds).median,
        }
    shown = Table(title="Shortlists", columns=COLUMNS, rows=list(rows.values()), note=f"int8, beam {beam}.")
    figures = {"machine": machine, "rows": list(rows.values())}
    report = Report(command=command_line("benchmarks.shortlist"), results=figures, tables=[shown])
    report.publish(Console(), json_path=json_path, markdown_path=markdown_path)


def _pairs(bundle: Bundle, corpus: Corpus) -> list[tuple[list[int], list[int]]]:
    tokenizers = bundle.source_tokenizer, bundle.target_tokenizer
    return token_pairs(corpus, *tokenizers, max_pairs=len(corpus), max_tokens=MAX_TOKENS)


def _learn(bundle: Bundle, corpus: Corpus) -> TranslationTable:
    return learn_table(_pairs(bundle, corpus), source_vocabulary=bundle.source_tokenizer.vocabulary_size)


def _count(bundle: Bundle, corpus: Corpus, folder: Path) -> TranslationTable:
    tokenizers = bundle.source_tokenizer, bundle.target_tokenizer
    return count_links(load_aligner(folder), corpus, *tokenizers, max_tokens=MAX_TOKENS)


def _frequencies(bundle: Bundle, corpus: Corpus) -> np.ndarray:
    return np.bincount(np.concatenate([np.asarray(target) for _, target in _pairs(bundle, corpus)]))


def _coverage(
    bundle: Bundle, shortlist: Shortlist, sources: tuple[str, ...], references: tuple[str, ...]
) -> Row:
    own = shortlist.candidates([ids or [0] for ids in bundle.source_tokenizer.encode_ids(sources)])
    tokens = bundle.target_tokenizer.encode_ids(references)
    hits = [np.isin(ids, candidates) for ids, candidates in zip(tokens, own, strict=True)]
    return {
        "candidates": float(np.mean([len(candidates) for candidates in own])),
        "covered": 100 * float(np.concatenate(hits).mean()),
        "whole": 100 * float(np.mean([hit.all() for hit in hits])),
    }


def _with_shortlist(bundle: Bundle, shortlist: Shortlist, folder: Path) -> Bundle:
    """A copy of the bundle with another shortlist."""
    copy = copy_bundle(bundle.path, folder)
    shortlist.save(folder / SHORTLIST_FILE)
    seal(folder, copy.manifest)
    return open_bundle(folder)


def _translate(system: BundleSystem, lines: list[str]) -> tuple[list[str], float]:
    began = time.perf_counter()
    texts = system.translate(lines)
    return texts, time.perf_counter() - began


if __name__ == "__main__":
    shortlist()
