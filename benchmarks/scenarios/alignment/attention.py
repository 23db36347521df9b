"""Alignment error rate of what a bundle's model looks at when it is made to say translations."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from dragoman_bundle import Bundle, open_bundle

from benchmarks.engines import open_decoder, running_engine
from benchmarks.report import Row, Table
from benchmarks.scenarios.alignment.sets import SETS, Spelled, Test, read_test
from dragoman_server.text.align.pairs import Pair, PairOptions, PairTooLongError, complete_pair, prepare_pair
from dragoman_server.text.translated import Alignment
from dragoman_server.wanted import Wanted
from dragoman_training.alignment.links import GoldLinks, Link, score_links

MAX_TARGET_TOKENS = 1024


def attention_rows(folder: Path, data: Path) -> list[Row]:
    """The error rates of a bundle on the test of its languages, in either direction; none without a test.

    Raises BundleError for what is no bundle, and MeasurementError where a file is missing.
    """
    bundle = open_bundle(folder)
    languages = bundle.manifest.source_language, bundle.manifest.target_language
    rows: list[Row] = []
    for name, is_turned in (("-".join(languages), False), ("-".join(reversed(languages)), True)):
        if name in SETS:
            test = read_test(name, data)
            rows.append({"set": name, **_score(bundle, test.turned() if is_turned else test)})
    return rows


def _score(bundle: Bundle, test: Test) -> Row:
    manifest = bundle.manifest
    precision = "fp32" if "fp32" in manifest.precisions else manifest.precisions[0]
    served: list[frozenset[Link]] = []
    strongest: list[frozenset[Link]] = []
    gold: list[GoldLinks] = []
    aligned = _align(bundle, precision, test)
    for source, target, alignments, links in zip(test.sources, test.targets, aligned, test.gold, strict=True):
        if alignments is None:
            continue
        # The strongest of a target word stands first.
        first = {alignment.target: alignment for alignment in reversed(alignments)}
        served.append(_links(source, target, alignments))
        strongest.append(_links(source, target, first.values()))
        gold.append(links)
    return {
        "model": manifest.key,
        "precision": precision,
        "pairs": len(gold),
        "strongest": 100 * score_links(strongest, gold).aer,
        "served": 100 * score_links(served, gold).aer,
        "links": sum(map(len, served)),
    }


def _align(bundle: Bundle, precision: str, test: Test) -> list[tuple[Alignment, ...] | None]:
    """The links of each pair; None where it is longer than the model takes."""
    options = PairOptions(max_target_tokens=MAX_TARGET_TOKENS)
    pairs: list[Pair | None] = []
    for source, target in zip(test.sources, test.targets, strict=True):
        try:
            pairs.append(prepare_pair(source.text, target.text, bundle, options, Wanted()))
        except PairTooLongError:
            pairs.append(None)
    decoder = open_decoder(bundle, precision=precision, shortlist=False)
    with running_engine(decoder, beam_size=1) as engine:
        futures = iter(
            engine.submit([sentence for pair in pairs if pair is not None for sentence in pair.sentences])
        )
        return [
            complete_pair(pair, [next(futures).result() for _ in pair.sentences], bundle).alignments
            if pair is not None
            else None
            for pair in pairs
        ]


def _links(source: Spelled, target: Spelled, alignments: Iterable[Alignment]) -> frozenset[Link]:
    """The links between the words that the ends of each link touch: "l'âne" is one to a server, and two
    here."""
    return frozenset(
        (one, other)
        for alignment in alignments
        for one in source.words(alignment.source)
        for other in target.words(alignment.target)
    )


def attention_table(rows: Sequence[Row]) -> Table:
    """The error rates of attention."""
    return Table(
        name="attention",
        title="Attention",
        columns=[
            ("set", "set"),
            ("model", "model"),
            ("precision", "precision"),
            ("pairs", "pairs", "d"),
            ("strongest", "strongest link", ".1f"),
            ("served", "as served", ".1f"),
            ("links", "links served", "d"),
        ],
        rows=rows,
        note="In percent: of each target word's strongest link, and of all links that a server gives.",
    )
