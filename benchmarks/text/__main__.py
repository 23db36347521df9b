"""`python -m benchmarks.text`: what comes through a translation, with protection and without, and what it
costs."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import click
from dragoman_bundle import BundleError, open_bundle
from rich.console import Console
from sacrebleu.metrics.bleu import BLEU

from benchmarks.corpus import Corpus, read_corpus
from benchmarks.cpu_time import cpu_seconds
from benchmarks.machine import describe_machine
from benchmarks.measuring import interleave, ratio
from benchmarks.options import (
    CONTEXT,
    beam_option,
    bundle_option,
    command_line,
    json_option,
    markdown_option,
    repeats_option,
)
from benchmarks.report import Column, Report, Row, Table
from benchmarks.text.hard_texts import HardText, read_hard_texts, translate
from benchmarks.text.insertions import OTHER_TERMS, SPANS, TAGS, TERMS, with_spans, with_tags
from benchmarks.text.kind_lines import KINDS, lines
from dragoman_server.offline.system import BundleSystem, open_bundle_system
from dragoman_server.text.options import Protection
from dragoman_server.text.protection.numbers import missing_numbers, numbers_in
from dragoman_server.text.protection.terms import Term, TermIndex
from dragoman_server.text.translated import TranslatedText
from dragoman_server.text.warnings import WarningKind

_FILE = click.Path(dir_okay=False, exists=True, path_type=Path)
_OFF = Protection(is_automatic=False)
_MODES = {"off": _OFF, "on": Protection()}
_PUT_BACK = (WarningKind.SPAN_PUT_BACK, WarningKind.NUMBER_PUT_BACK)


@click.command(context_settings=CONTEXT)
@bundle_option
@click.option(
    "--hard-texts",
    type=_FILE,
    help="JSON lines with text, kind, must, must_not and format: what answers have one of, what they lack.",
)
@click.option(
    "--input",
    "source",
    default=Path("data/tatoeba-de-en/val.de"),
    show_default=True,
    type=_FILE,
    help="Sentences, one a line.",
)
@click.option(
    "--reference",
    default=Path("data/tatoeba-de-en/val.en"),
    show_default=True,
    type=_FILE,
    help="Their translations.",
)
@click.option(
    "--limit", default=1000, show_default=True, type=click.IntRange(min=1), help="Sentences that are taken."
)
@click.option("--show", is_flag=True, help="Print each hard text with both of its translations.")
@beam_option
@repeats_option
@json_option
@markdown_option
def text(
    bundle: Path,
    hard_texts: Path | None,
    source: Path,
    reference: Path,
    limit: int,
    show: bool,
    beam: int,
    repeats: int,
    json_path: Path | None,
    markdown_path: Path | None,
) -> None:
    """Measures what of a text comes through, and what keeping it costs.

    The exit code is 1 where something is lost that is guaranteed to be kept.
    """
    hard = [] if hard_texts is None else read_hard_texts(hard_texts)
    corpus = read_corpus(source, reference, limit)
    try:
        with open_bundle_system(
            str(bundle),
            source_language=None,
            target_language=None,
            beam_size=beam,
            device="cpu",
            precision="auto",
        ) as system:
            by_kind = _measure_hard_texts(system, hard, show)
            by_line = _measure_lines(system, open_bundle(bundle).manifest.source_language, show)
            kept = _measure_spans(system, corpus.sources)
            terms = _measure_terms(system, corpus)
            costs = _measure_costs(system, corpus, repeats)
    except BundleError as error:
        raise click.ClickException(str(error)) from error
    Report(
        command=command_line("benchmarks.text"),
        results={
            "machine": describe_machine(),
            "bundle": str(bundle),
            "hard_texts": by_kind,
            "lines": by_line,
            "kept": kept,
            "terms": terms,
            "costs": costs,
        },
        tables=[
            Table(title="Hard texts that come through", columns=_columns("kind"), rows=by_kind),
            Table(
                title="Texts of each kind, German and English, that come through",
                columns=_columns("kind"),
                rows=by_line,
            ),
            Table(
                title="Spans that come out once and as they were",
                columns=[*_columns("kind"), Column(key="put_back", header="translated around", format="d")],
                rows=kept,
            ),
            Table(
                title="Terms",
                columns=[
                    *_columns("terms"),
                    Column(key="bleu_off", header="BLEU without", format=".2f"),
                    Column(key="bleu_on", header="BLEU with", format=".2f"),
                ],
                rows=terms,
            ),
            Table(
                title="Processors' time a sentence",
                columns=[
                    Column(key="texts", header="sentences"),
                    Column(key="protection", header="protection"),
                    Column(key="bleu", header="BLEU", format=".2f"),
                    Column(key="milliseconds", header="ms", format=".3f"),
                    Column(key="relative", header="of the time when off", format=".3f"),
                ],
                rows=costs,
            ),
        ],
    ).publish(Console(), json_path=json_path, markdown_path=markdown_path)
    lost = [
        f"{row['kind']}: {row['num_on']} of {row['num_lines']}"
        for row in (*by_line, *kept)
        if row["num_on"] != row["num_lines"]
    ]
    lost += [
        f"terms ({row['terms']}): {row['num_on']} of {row['num_lines']}"
        for row in terms
        if row["num_on"] != row["num_lines"]
    ]
    if lost:
        raise click.ClickException(f"what is guaranteed was not kept: {'; '.join(lost)}")


def _columns(first: str) -> list[Column]:
    return [
        Column(key=first, header=first),
        Column(key="num_lines", header="lines", format="d"),
        Column(key="num_off", header="without", format="d"),
        Column(key="num_on", header="with protection", format="d"),
    ]


def _measure_hard_texts(system: BundleSystem, hard: Sequence[HardText], show: bool) -> list[Row]:
    counts: dict[str, list[int]] = {}
    for line in hard:
        [off] = translate(system, [line.text], _OFF)
        [on] = translate(system, [line.text], Protection(), is_html=line.is_html)
        if show:
            click.echo(f"{line.kind}\t{line.passes(on.text)}\t{line.text}\t{off.text}\t{on.text}", err=True)
        for kind in (line.kind, "all"):
            count = counts.setdefault(kind, [0, 0, 0])
            count[0] += 1
            count[1] += line.passes(off.text)
            count[2] += line.passes(on.text)
    if counts:
        # In the order of the file, all of them last.
        counts["all"] = counts.pop("all")
    return [
        {"kind": kind, "num_lines": lines, "num_off": off, "num_on": on}
        for kind, (lines, off, on) in counts.items()
    ]


def _measure_lines(system: BundleSystem, language: str, show: bool) -> list[Row]:
    rows: list[Row] = []
    for kind in KINDS:
        chosen = list(lines(kind, language))
        texts = [line.text for line in chosen]
        others = [line.same_as or "" for line in chosen]
        passed = []
        for protection, is_html in ((_OFF, False), (Protection(), kind == "markup")):
            found = [each.text for each in translate(system, texts, protection, is_html=is_html)]
            same = [each.text for each in translate(system, others, protection)]
            passed.append([line.passes(*answers) for line, *answers in zip(chosen, found, same, strict=True)])
            if show and is_html == (kind == "markup"):
                for line, answer, has_passed in zip(chosen, found, passed[-1], strict=True):
                    click.echo(f"{kind}\t{has_passed}\t{line.text!r}\t{answer!r}", err=True)
        off, on = map(sum, passed)
        rows.append({"kind": kind, "num_lines": len(chosen), "num_off": off, "num_on": on})
    return rows


def _measure_spans(system: BundleSystem, sentences: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    for kind in SPANS:
        lines = with_spans(sentences, kind)
        texts = [line.text for line in lines]
        off, on = translate(system, texts, _OFF), translate(system, texts, Protection())
        rows.append(
            {
                "kind": kind,
                "num_lines": len(lines),
                "num_off": sum(
                    _has(line.text, line.span, found.text) for line, found in zip(lines, off, strict=True)
                ),
                "num_on": sum(
                    _has(line.text, line.span, found.text) for line, found in zip(lines, on, strict=True)
                ),
                "put_back": sum(any(warning.kind in _PUT_BACK for warning in found.warnings) for found in on),
            }
        )
    texts = list(with_tags(sentences))
    off, on = translate(system, texts, _OFF), translate(system, texts, Protection(), is_html=True)
    rows.append(
        {
            "kind": "markup",
            "num_lines": len(texts),
            "num_off": sum(all(found.text.count(tag) == 1 for tag in TAGS) for found in off),
            "num_on": sum(all(found.text.count(tag) == 1 for tag in TAGS) for found in on),
            "put_back": sum(any(warning.kind in _PUT_BACK for warning in found.warnings) for found in on),
        }
    )
    return rows


def _has(text: str, span: str, answer: str) -> bool:
    if not (numbers := numbers_in(span)) or not span[0].isdigit():
        return answer.count(span) == text.count(span)
    # The languages of the shipped model, and of the file.
    return not missing_numbers(numbers, answer, source_language="de", target_language="en")


def _measure_terms(system: BundleSystem, corpus: Corpus) -> list[Row]:
    """Sentences with any of the terms: those whose reference has its translation, and translations of our
    own."""
    references = corpus.references or ()
    rows: list[Row] = []
    for name, terms, agrees in (("of the reference", TERMS, True), ("of nobody's", OTHER_TERMS, False)):
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
                "terms": name,
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
        "with a placeholder": [line.text for line in with_spans(corpus.sources, "placeholder")],
    }
    cases = {(name, mode): _costs_of(system, texts[name], mode) for name in texts for mode in _MODES}
    # The first run of each makes what the others find there.
    results = interleave(cases, repeats + 1, lambda repeat, case, result: None)
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


def _costs_of(system: BundleSystem, texts: Sequence[str], mode: str) -> Callable[[], tuple[float, list[str]]]:
    def run() -> tuple[float, list[str]]:
        began = cpu_seconds()
        found = translate(system, texts, _MODES[mode])
        return cpu_seconds() - began, [each.text for each in found]

    return run


if __name__ == "__main__":
    text()
