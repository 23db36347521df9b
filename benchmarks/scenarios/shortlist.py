"""What shortlists cost in BLEU and bring in speed: none, and several sizes, by pieces and by words."""

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
from sacrebleu.metrics.bleu import BLEU

from benchmarks.corpus import read_corpus
from benchmarks.engines import open_decoder, running_system
from benchmarks.harness import BEAM, BUNDLE, FILE, FOLDER, LIMIT, REPEATS, THREADS, Found, scenario, several
from benchmarks.measuring import in_turns, ratio, summarize
from benchmarks.report import Row, Table
from dragoman_export.shortlist.options import ShortlistOptions, make_shortlist
from dragoman_server.offline.system import BundleSystem
from dragoman_training.alignment.aligner import load_aligner
from dragoman_training.alignment.pieces import count_links, learn_table
from dragoman_training.data.files import read_parallel
from dragoman_training.data.training_corpus import token_pairs

NONE, PIECES = "no shortlist", "pieces, ibm1"
MAX_TOKENS = 100


def _pair(name: str, help: str) -> Callable[..., Callable[..., object]]:
    return click.option(name, nargs=2, required=True, metavar="SOURCE TARGET", type=FILE, help=help)


@scenario(
    BUNDLE,
    _pair("--train", "The pairs that shortlists are learnt from."),
    _pair("--test", "What is translated, and its references."),
    click.option(
        "--aligner",
        "aligners",
        multiple=True,
        type=FOLDER,
        help="A saved aligner, whose links make one, too.",
    ),
    several("--targets", (10, 20, 50, 100), "Sizes."),
    BEAM,
    THREADS,
    LIMIT,
    REPEATS,
)
def command(
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
) -> Found:
    """Decode in int8 without a shortlist and with each of several, in turn.

    \b
      python -m benchmarks shortlist --train data/tatoeba-de-en/train.de data/tatoeba-de-en/train.en \\
        --test data/tatoeba-de-en/val.de data/tatoeba-de-en/val.en --aligner runs/align-de-en
    """
    opened, corpus, pairs = open_bundle(bundle), read_corpus(*test, limit), read_parallel(*train)
    assert corpus.references is not None
    tokenizers = opened.source_tokenizer, opened.target_tokenizer
    tokens = token_pairs(pairs, *tokenizers, max_pairs=len(pairs), max_tokens=MAX_TOKENS)
    counts = np.bincount(np.concatenate([np.asarray(target) for _, target in tokens]))
    tables = {PIECES: learn_table(tokens, source_vocabulary=tokenizers[0].vocabulary_size)}
    for aligner in map(load_aligner, aligners):
        tables[f"words, {aligner.name}"] = count_links(aligner, pairs, *tokenizers, max_tokens=MAX_TOKENS)
    cases: dict[tuple[str, int], Callable[[], tuple[list[str], float]]] = {}
    rows: dict[tuple[str, int], Row] = {}
    with ExitStack() as stack:
        parent = Path(stack.enter_context(TemporaryDirectory()))

        def serve(key: tuple[str, int], own: Bundle) -> None:
            decoder = open_decoder(own, precision="int8", shortlist=key[0] != NONE)
            system = stack.enter_context(running_system(own, decoder, beam_size=beam, threads=threads))
            cases[key] = partial(_translate, system, list(corpus.sources))

        serve((NONE, 0), opened)
        rows[NONE, 0] = {"of": NONE}
        for name, table in tables.items():
            for number in targets:
                options = ShortlistOptions(max_targets=number)
                made = make_shortlist(table, counts, *tokenizers, options)
                serve((name, number), _with_shortlist(opened, made, parent / f"m{len(rows)}" / "1"))
                covered = _coverage(opened, made, corpus.sources, corpus.references)
                rows[name, number] = {"of": name, "max_targets": number, **covered}
        found = in_turns(cases, repeats, lambda result: f"{result[1]:.1f} s")
    plain = found[NONE, 0]
    for key, results in found.items():
        texts, seconds = results[0][0], [seconds for _, seconds in results]
        rows[key] = {
            **rows[key],
            "bleu": BLEU().corpus_score(texts, [list(corpus.references)]).score,
            "changed": sum(one != other for one, other in zip(texts, plain[0][0], strict=True)),
            "sentences": len(texts) / summarize(seconds).median,
            "times": ratio([seconds for _, seconds in plain], seconds).median,
        }
    shown = Table(
        name="rows",
        title="Shortlists",
        columns=[
            ("of", "of"),
            ("max_targets", "targets", "d"),
            ("candidates", "candidates a sentence", ".0f"),
            ("covered", "reference tokens covered, %", ".2f"),
            ("whole", "references covered whole, %", ".1f"),
            ("bleu", "BLEU", ".2f"),
            ("changed", "lines changed", "d"),
            ("sentences", "sentences/s", ".0f"),
            ("times", "times as fast", ".2f"),
        ],
        rows=list(rows.values()),
        note=f"int8, beam {beam}.",
    )
    return Found(tables=[shown])


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
    return system.translate(lines), time.perf_counter() - began
