"""Alignment error rate of what a bundle's model looks at when it is made to say translations."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import click
from dragoman_bundle import Bundle, BundleError, open_bundle

from benchmarks.alignment.sets import SETS, Test, prepare_val, read_test, read_val
from benchmarks.alignment.spelling import Spelled
from benchmarks.alignment.systems import our_system
from benchmarks.engines import open_decoder, running_engine
from benchmarks.report import Column, Row
from dragoman_server.text.alignment import Alignment
from dragoman_server.text.pair import Pair, PairOptions, PairTooLongError, complete_pair, prepare_pair
from dragoman_training.alignment.output.pharaoh import GoldLinks, Link
from dragoman_training.alignment.output.scoring import score_links

COLUMNS = [
    Column(key="set", header="set"),
    Column(key="model", header="model"),
    Column(key="precision", header="precision"),
    Column(key="pairs", header="pairs", format="d"),
    Column(key="strongest", header="strongest link", format=".1f"),
    Column(key="served", header="as served", format=".1f"),
    Column(key="links", header="links served", format="d"),
]
MAX_TARGET_TOKENS = 1024
LINKER = "ibm4"
"""What links a validation text, in the place of people."""


class Attention:
    """Holds the links of models against those of the tests of their languages, in either direction."""

    def __init__(self, data: Path, folder: Path, *, with_val: bool) -> None:
        """`with_val` adds the corpora's validation texts, linked by IBM model 4 in `folder`."""
        self._data = data
        self._folder = folder
        self._with_val = with_val
        self._tests: dict[str, dict[str, Test]] = {}

    def rows(self, folder: Path) -> list[Row]:
        """The error rates of a bundle, in percent; none where no test is of its languages.

        Raises ClickException for what is no bundle, and PeerMissingError where the linker fails.
        """
        try:
            bundle = open_bundle(folder)
        except BundleError as error:
            raise click.ClickException(str(error)) from error
        manifest = bundle.manifest
        languages = manifest.source_language, manifest.target_language
        rows: list[Row] = []
        for name, is_turned in (("-".join(languages), False), ("-".join(reversed(languages)), True)):
            if name in SETS:
                for title, test in self._read(name).items():
                    rows.append({"set": title, **_score(bundle, test.turned() if is_turned else test)})
        return rows

    def _read(self, name: str) -> dict[str, Test]:
        if name not in self._tests:
            tests = {name: read_test(name, self._data)}
            if self._with_val:
                tests[f"{name}, val"] = _linked_val(name, self._data, self._folder)
            self._tests[name] = tests
        return self._tests[name]


def _linked_val(name: str, data: Path, folder: Path) -> Test:
    """With the links of both directions of a model that learns from it and the corpus."""
    aligned = our_system(LINKER)(prepare_val(name, data, folder), folder)
    links = aligned.links["grow-diag-final-and"]
    return replace(read_val(name, data), gold=[GoldLinks(sure=pair, possible=pair) for pair in links])


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
            pairs.append(prepare_pair(source.text, target.text, bundle, options, None))
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
    """Between the words that the ends of each link touch: "l'âne" is one to a server, and two here."""
    return frozenset(
        (one, other)
        for alignment in alignments
        for one in source.words(alignment.source)
        for other in target.words(alignment.target)
    )
