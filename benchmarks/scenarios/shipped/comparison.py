"""Bundles on test sets, words, interface strings, everyday lines and hard texts, one after the other."""

from pathlib import Path

import click
from dragoman_bundle import open_bundle
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from benchmarks.corpus import Corpus, read_corpus
from benchmarks.harness import BEAM, FILE, LIMIT, Found, option, scenario
from benchmarks.machine import cpu_seconds
from benchmarks.measuring import MeasurementError, say
from benchmarks.report import Row, Table
from benchmarks.scenarios.shipped.doubts import judge_confidence, judge_warnings
from benchmarks.scenarios.shipped.judging import judge, mix, read_strings, read_words
from benchmarks.scenarios.text.lines import read_hard_texts, translate
from dragoman_server.offline.system import BundleSystem, open_bundle_system
from dragoman_server.text.options import Protection
from dragoman_server.text.translated import TranslatedText

HERE = Path(__file__).parent
NEWS, EVERYDAY = "ud-pud", "tatoeba val"
NUM_TIMED = 100
"""Sentences that are translated one after the other to be timed."""


@scenario(
    click.option(
        "--bundle",
        "bundles",
        multiple=True,
        default=("models/de-en/3",),
        show_default=True,
        type=click.Path(exists=True, file_okay=False),
        help="Bundle to measure. Repeatable; all are of one pair of languages.",
    ),
    option("--data", Path("data"), "Folder with tests/ud-pud, tatoeba-de-en and hard-texts; any may lack."),
    option("--strings", None, "Interface strings held out: `dragoman corpora`'s ui-heldout.tsv.", type=FILE),
    option("--mixed", None, "Write everyday lines with all outputs, mixed, to this file.", type=FILE),
    LIMIT,
    BEAM,
)
def command(
    *,
    bundles: tuple[str, ...],
    data: Path,
    strings: Path | None,
    mixed: Path | None,
    limit: int | None,
    beam: int,
) -> Found:
    """Measure how good models are at news, everyday sentences, words, interface strings and hard texts; and
    whether their confidence and warnings are right.

    The JSON says whose the outputs in the file of `--mixed` are.
    """
    scores: list[Row] = []
    shares: list[Row] = []
    ratings: list[Row] = []
    warnings: list[Row] = []
    outputs: dict[str, list[str]] = {}
    everyday: list[str] = []
    manifest = open_bundle(Path(bundles[0])).manifest
    source, target = manifest.source_language, manifest.target_language
    everyday_path = HERE / f"everyday.{source}-{target}.txt"
    if everyday_path.exists():
        everyday = everyday_path.read_text(encoding="utf-8").splitlines()[:limit]
    try:
        for location in bundles:
            with open_bundle_system(
                location,
                source_language=source,
                target_language=target,
                beam_size=beam,
                device="cpu",
                precision="auto",
            ) as system:
                corpora = _corpora(data, source, target, limit)
                translated = {name: system.translate_texts(each.sources) for name, each in corpora.items()}
                scores += _scores(system, location, corpora, translated)
                for name, each in corpora.items():
                    assert each.references is not None
                    rating = judge_confidence(translated[name], each.references)
                    ratings += [{"bundle": location, "texts": name, **rating}] if rating else []
                if corpora.keys() >= {NEWS, EVERYDAY}:
                    people = _corpora(data, source, target, None)[EVERYDAY]
                    rows = judge_warnings(
                        translated[NEWS], corpora[NEWS], people, open_bundle(Path(location))
                    )
                    warnings += [{"bundle": location, **row} for row in rows]
                shares += _shares(system, location, source, target, data, strings, limit)
                outputs[location] = system.translate(everyday)
    except ValueError as error:
        raise MeasurementError(str(error)) from error
    lines, keys = mix(everyday, outputs, seed=1)
    if mixed:
        mixed.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    elif len(bundles) == 1:
        for line, output in zip(everyday, outputs[bundles[0]], strict=True):
            say(f"{line}\n    {output}")
    tables = [
        Table(
            name="scores",
            title="Sentences",
            columns=[
                ("bundle", "bundle"),
                ("texts", "texts"),
                ("count", "sentences", ",d"),
                ("bleu", "BLEU", ".2f"),
                ("chrf", "chrF", ".2f"),
                ("milliseconds", "ms of the processors, alone", ".1f"),
            ],
            rows=scores,
        ),
        Table(
            name="shares",
            title="Texts that have few translations",
            columns=[
                ("bundle", "bundle"),
                ("texts", "texts"),
                ("count", "count", ",d"),
                ("right", "right", ".1%"),
                ("loosely", "but for case or full stop", ".1%"),
                ("stops", "with a full stop of its own", ".1%"),
            ],
            rows=shares,
        ),
    ]
    tables += [
        Table(
            name="confidence",
            title="Confidence, where a bundle has one",
            columns=[
                ("bundle", "bundle"),
                ("texts", "texts"),
                ("count", "sentences", ",d"),
                ("good", "chrF of 50 or more", ".1%"),
                ("confidence", "mean confidence", ".3f"),
                ("auc", "AUC", ".3f"),
                ("error", "expected calibration error", ".3f"),
            ],
            rows=ratings,
        ),
        Table(
            name="warnings",
            title="Warnings",
            columns=[
                ("bundle", "bundle"),
                ("kind", "kind"),
                ("false", "told of people's translations of tatoeba val", ".2%"),
                ("fault", "outputs of ud-pud that have"),
                ("faulty", "number", ",d"),
                ("hit", "of them told", ".0%"),
                ("told", "told at all", ",d"),
            ],
            rows=warnings,
        ),
    ]
    return Found(tables=tables, facts={"everyday": outputs, "mixed": keys})


def _corpora(data: Path, source: str, target: str, limit: int | None) -> dict[str, Corpus]:
    """The test sets that there are, by name."""
    found: dict[str, Corpus] = {}
    for name, stem in (
        (NEWS, "tests/ud-pud/pud"),
        (EVERYDAY, f"tatoeba-{source}-{target}/val"),
        (EVERYDAY, f"tatoeba-{target}-{source}/val"),
    ):
        sides = data / f"{stem}.{source}", data / f"{stem}.{target}"
        if all(side.exists() for side in sides):
            found[name] = read_corpus(*sides, limit)
    return found


def _scores(
    system: BundleSystem,
    bundle: str,
    corpora: dict[str, Corpus],
    translated: dict[str, list[TranslatedText]],
) -> list[Row]:
    rows: list[Row] = []
    for name, corpus in corpora.items():
        outputs = [one.text for one in translated[name]]
        assert corpus.references is not None
        references = [list(corpus.references)]
        timed = corpus.sources[:NUM_TIMED]
        began = cpu_seconds()
        for sentence in timed:
            system.translate([sentence])
        rows.append(
            {
                "bundle": bundle,
                "texts": name,
                "count": len(outputs),
                "bleu": BLEU().corpus_score(outputs, references).score,
                "chrf": CHRF().corpus_score(outputs, references).score,
                "milliseconds": 1000 * (cpu_seconds() - began) / len(timed),
            }
        )
    return rows


def _shares(
    system: BundleSystem,
    bundle: str,
    source: str,
    target: str,
    data: Path,
    strings: Path | None,
    limit: int | None,
) -> list[Row]:
    rows: list[Row] = []
    words_path = HERE / f"words.{source}-{target}.tsv"
    found = {"common words": read_words(words_path)} if words_path.exists() else {}
    if strings:
        found["interface strings"] = read_strings(strings)
    for name, references in found.items():
        # Evenly spread: the lists are ordered, by part of speech or by spelling.
        step = -(-len(references) // (limit or len(references)))
        chosen = dict(list(references.items())[::step])
        rows.append({"bundle": bundle, **judge(name, chosen, system.translate(list(chosen)))})
    hard_path = data / "hard-texts" / f"{source}-{target}.jsonl"
    if hard_path.exists():
        hard = read_hard_texts(hard_path)[:limit]
        passed = sum(
            line.passes(translate(system, [line.text], Protection(), is_html=line.is_html)[0].text)
            for line in hard
        )
        rows.append(
            {"bundle": bundle, "texts": "hard texts", "count": len(hard), "right": passed / len(hard)}
        )
    return rows
