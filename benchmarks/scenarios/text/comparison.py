"""The guarantees on hard texts, made texts, a corpus with spans and terms in it; and processors' time."""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from statistics import median

import click
from dragoman_bundle import Bundle, open_bundle
from sacrebleu.metrics.bleu import BLEU

from benchmarks.corpus import Corpus, read_corpus
from benchmarks.harness import BEAM, BUNDLE, FILE, REPEATS, Found, option, scenario, several
from benchmarks.machine import cpu_seconds
from benchmarks.measuring import in_turns, ratio
from benchmarks.report import Row, Table
from benchmarks.scenarios.text.lines import (
    INSERTED,
    KINDS,
    TAGS,
    TERMS,
    HardText,
    lines,
    read_hard_texts,
    translate,
    translate_in,
    with_spans,
    with_tags,
)
from dragoman_server.offline.system import BundleSystem, open_bundle_system
from dragoman_server.text.find.numbers import missing_numbers, numbers_in
from dragoman_server.text.find.terms import Term, TermIndex
from dragoman_server.text.options import Protection
from dragoman_server.text.translated import TranslatedText, WarningKind

FORMATS = {"markup": ("markup",), "invisible": ("plain",)}
"""The formats that lines of a kind stand in, where not in all."""
_OFF = Protection(is_automatic=False)
_MODES = {"off": _OFF, "on": Protection()}
_PUT_BACK = (WarningKind.SPAN_PUT_BACK, WarningKind.NUMBER_PUT_BACK)


@scenario(
    BUNDLE,
    option("--hard-texts", None, "JSON lines with text, kind, must, must_not and format.", type=FILE),
    option("--input", Path("data/tatoeba-de-en/val.de"), "Sentences, one a line.", to="source", type=FILE),
    option("--reference", Path("data/tatoeba-de-en/val.en"), "Their translations.", type=FILE),
    option("--limit", 1000, "Sentences that are taken."),
    option("--back", Path("models/en-de/2"), "Bundle of the other direction, for lines of each kind."),
    option("--seed", 1, "The number that the lines of each kind are drawn by."),
    several("--kinds", KINDS, "Kinds of lines.", KINDS),
    option("--lines-only", False, "Measure lines of each kind alone."),
    option("--show", False, "Print each hard text with both of its translations."),
    BEAM,
    REPEATS,
)
def command(
    *,
    bundle: Path,
    hard_texts: Path | None,
    source: Path,
    reference: Path,
    limit: int,
    back: Path,
    seed: int,
    kinds: Sequence[str],
    lines_only: bool,
    show: bool,
    beam: int,
    repeats: int,
) -> Found:
    """Measure what of a text comes through, and what keeping it costs.

    The exit code is 1 where something is lost that is guaranteed to be kept.
    """
    by_line: list[Row] = []
    for each in (bundle, back):
        with _opened(each, beam) as system:
            by_line += _measure_lines(system, open_bundle(each), kinds, seed, show)
    line_table = Table(
        name="lines",
        title="Texts of each kind that come through",
        columns=[
            ("kind", "kind"),
            ("direction", "direction"),
            ("format", "format"),
            ("num_lines", "lines", "d"),
            ("num_on", "kept", "d"),
            ("num_warned", "warned of", "d"),
        ],
        rows=by_line,
    )
    if lines_only:
        return Found(tables=[line_table], facts={"bundle": str(bundle)}, broken=_lost(by_line))
    hard = [] if hard_texts is None else read_hard_texts(hard_texts)
    corpus = read_corpus(source, reference, limit)
    with _opened(bundle, beam) as system:
        by_kind = _measure_hard_texts(system, hard, show)
        kept = _measure_spans(system, corpus.sources)
        terms = _measure_terms(system, corpus)
        costs = _measure_costs(system, corpus, repeats)
    tables = [
        _table("hard_texts", "Hard texts that come through", by_kind),
        line_table,
        _table(
            "kept", "Spans that come out once and as they were", kept, ("put_back", "translated around", "d")
        ),
        _table("terms", "Terms", terms, ("bleu_off", "BLEU without", ".2f"), ("bleu_on", "BLEU with", ".2f")),
        Table(
            name="costs",
            title="Processors' time a sentence",
            columns=[
                ("texts", "sentences"),
                ("protection", "protection"),
                ("bleu", "BLEU", ".2f"),
                ("milliseconds", "ms", ".3f"),
                ("relative", "of the time when off", ".3f"),
            ],
            rows=costs,
        ),
    ]
    broken = _lost([*by_line, *kept, *terms])
    return Found(tables=tables, facts={"bundle": str(bundle)}, broken=broken)


def _opened(bundle: Path, beam: int) -> AbstractContextManager[BundleSystem]:
    return open_bundle_system(
        str(bundle),
        source_language=None,
        target_language=None,
        beam_size=beam,
        device="cpu",
        precision="auto",
    )


def _lost(rows: Sequence[Row]) -> list[str]:
    return [
        f"of {row['kind']} {row['num_on']} of {row['num_lines']} were kept"
        for row in rows
        if row["num_on"] != row["num_lines"]
    ]


def _table(name: str, title: str, rows: Sequence[Row], *others: tuple[str, str, str]) -> Table:
    counts = [("num_lines", "lines", "d"), ("num_off", "without", "d"), ("num_on", "with protection", "d")]
    return Table(name=name, title=title, columns=[("kind", "kind"), *counts, *others], rows=rows)


def _measure_hard_texts(system: BundleSystem, hard: Sequence[HardText], show: bool) -> list[Row]:
    counts: dict[str, Row] = {}
    for line in hard:
        [off] = translate(system, [line.text], _OFF)
        [on] = translate(system, [line.text], Protection(), is_html=line.is_html)
        if show:
            click.echo(f"{line.kind}\t{line.passes(on.text)}\t{line.text}\t{off.text}\t{on.text}", err=True)
        for kind in (line.kind, "all"):
            # In the order of the file, all of them last.
            before = counts.pop("all", None) if kind == "all" else counts.get(kind)
            found = (1, line.passes(off.text), line.passes(on.text))
            names = ("num_lines", "num_off", "num_on")
            row = {
                name: (before or {}).get(name, 0) + number for name, number in zip(names, found, strict=True)
            }
            counts[kind] = {"kind": kind, **row}
    return list(counts.values())


def _measure_lines(
    system: BundleSystem, bundle: Bundle, kinds: Sequence[str], seed: int, show: bool
) -> list[Row]:
    """Lines of each kind, as plain text, as HTML, and in a catalogue of messages."""
    manifest = bundle.manifest
    languages = manifest.source_language, manifest.target_language
    rows: list[Row] = []
    for kind in kinds:
        chosen = list(lines(kind, languages, seed))
        for name in FORMATS.get(kind, ("plain", "html", "po")):
            found = translate_in(name, system, [line.text for line in chosen])
            others = translate_in("plain", system, [line.same_as or "" for line in chosen])
            passed = [
                line.passes(answer, other)
                for line, (answer, _), (other, _) in zip(chosen, found, others, strict=True)
            ]
            if show:
                for line, (answer, _), has_passed in zip(chosen, found, passed, strict=True):
                    click.echo(f"{kind}\t{name}\t{has_passed}\t{line.text!r}\t{answer!r}", err=True)
            rows.append(
                {
                    "kind": kind,
                    "direction": "-".join(languages),
                    "format": name,
                    "num_lines": len(chosen),
                    "num_on": sum(passed),
                    "num_warned": sum(is_warned for _, is_warned in found),
                }
            )
    return rows


def _measure_spans(system: BundleSystem, sentences: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    cases: dict[str, tuple[list[str], Callable[[int, str], bool]]] = {}
    for kind in INSERTED:
        lines = with_spans(sentences, kind)
        cases[kind] = [text for text, _ in lines], partial(_has_span, lines)
    cases["markup"] = (
        list(with_tags(sentences)),
        lambda number, answer: all(answer.count(tag) == 1 for tag in TAGS),
    )
    for kind, (texts, passes) in cases.items():
        off = translate(system, texts, _OFF)
        on = translate(system, texts, Protection(), is_html=kind == "markup")
        rows.append(
            {
                "kind": kind,
                "num_lines": len(texts),
                "num_off": sum(passes(number, found.text) for number, found in enumerate(off)),
                "num_on": sum(passes(number, found.text) for number, found in enumerate(on)),
                "put_back": sum(any(warning.kind in _PUT_BACK for warning in found.warnings) for found in on),
            }
        )
    return rows


def _has_span(lines: Sequence[tuple[str, str]], number: int, answer: str) -> bool:
    text, span = lines[number]
    if not (numbers := numbers_in(span)) or not span[0].isdigit():
        return answer.count(span) == text.count(span)
    # The languages of the shipped model, and of the file.
    return not missing_numbers(numbers, answer, source_language="de", target_language="en")


def _measure_terms(system: BundleSystem, corpus: Corpus) -> list[Row]:
    """Sentences with any of the terms: those whose reference has its translation, and translations of our
    own."""
    references = corpus.references or ()
    rows: list[Row] = []
    for name, terms, agrees in (
        ("terms of the reference", TERMS, True),
        ("terms of nobody's", {word: f"x{target}" for word, target in TERMS.items()}, False),
    ):
        chosen = [
            (sentence, reference, word)
            for sentence, reference in zip(corpus.sources, references, strict=True)
            for word in TERMS
            if re.search(rf"\b{word}\b", sentence)
            and (not agrees or re.search(rf"\b{TERMS[word]}\b", reference, re.IGNORECASE))
        ]
        if not chosen:
            continue
        index = TermIndex([Term(source=word, target=target) for word, target in terms.items()])
        texts = [sentence for sentence, _, _ in chosen]
        off = translate(system, texts, Protection())
        on = translate(system, texts, Protection(finders=(index,)))
        wanted = [terms[word] for _, _, word in chosen]
        golden = [[reference for _, reference, _ in chosen]]
        rows.append(
            {
                "kind": name,
                "num_lines": len(chosen),
                "num_off": _num_with(wanted, off),
                "num_on": _num_with(wanted, on),
                "bleu_off": BLEU().corpus_score([found.text for found in off], golden).score
                if agrees
                else None,
                "bleu_on": BLEU().corpus_score([found.text for found in on], golden).score
                if agrees
                else None,
            }
        )
    return rows


def _num_with(wanted: Sequence[str], found: Sequence[TranslatedText]) -> int:
    return sum(
        re.search(rf"\b{word}\b", translated.text, re.IGNORECASE) is not None
        for word, translated in zip(wanted, found, strict=True)
    )


def _measure_costs(system: BundleSystem, corpus: Corpus, repeats: int) -> list[Row]:
    """The sentences as they are, and with a placeholder in each, with protection off and on, in turn."""
    texts = {
        "as they are": corpus.sources,
        "with a placeholder": [text for text, _ in with_spans(corpus.sources, "placeholder")],
    }
    cases = {(name, mode): partial(_cost, system, texts[name], mode) for name in texts for mode in _MODES}
    # The first run of each makes what the others find there.
    results = in_turns(cases, repeats + 1, lambda found: f"{found[0]:.1f} s of processors")
    golden = [list(corpus.references or ())]
    rows: list[Row] = []
    for (name, mode), runs in results.items():
        seconds = [cost for cost, _ in runs[1:]]
        off = [cost for cost, _ in results[name, "off"][1:]]
        rows.append(
            {
                "texts": name,
                "protection": mode,
                "bleu": BLEU().corpus_score(runs[0][1], golden).score if name == "as they are" else None,
                "milliseconds": 1000 * median(seconds) / len(corpus.sources),
                "relative": ratio(seconds, off).median,
            }
        )
    return rows


def _cost(system: BundleSystem, texts: Sequence[str], mode: str) -> tuple[float, list[str]]:
    began = cpu_seconds()
    found = translate(system, texts, _MODES[mode])
    return cpu_seconds() - began, [each.text for each in found]
