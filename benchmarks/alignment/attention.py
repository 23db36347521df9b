"""Alignment error rate of what a bundle's model looks at when it is made to say the gold translations."""

from bisect import bisect_right
from pathlib import Path

import click
from dragoman_bundle import Bundle, BundleError, open_bundle

from benchmarks.alignment.sets import SETS, read_test
from benchmarks.engines import open_decoder, running_engine
from benchmarks.report import Column, Row
from dragoman_server.text.alignment import Alignment
from dragoman_server.text.pair import PairOptions, complete_pair, prepare_pair
from dragoman_training.alignment.output.pharaoh import Link
from dragoman_training.alignment.output.scoring import score_links

COLUMNS = [
    Column(key="set", header="set"),
    Column(key="model", header="model"),
    Column(key="precision", header="precision"),
    Column(key="strongest", header="strongest link", format=".1f"),
    Column(key="served", header="as served", format=".1f"),
    Column(key="links", header="links served", format="d"),
]
MAX_TARGET_TOKENS = 1024


def attention_row(folder: Path, data: Path) -> Row | None:
    """The error rates of a bundle, in percent; None where no gold set is of its languages.

    Raises ClickException for what is no bundle.
    """
    try:
        bundle = open_bundle(folder)
    except BundleError as error:
        raise click.ClickException(str(error)) from error
    manifest = bundle.manifest
    name = f"{manifest.source_language}-{manifest.target_language}"
    if name not in SETS:
        return None
    test = read_test(name, data)
    precision = "fp32" if "fp32" in manifest.precisions else manifest.precisions[0]
    aligned = _align(bundle, precision, test.sources, test.targets)
    served: list[frozenset[Link]] = []
    strongest: list[frozenset[Link]] = []
    for source, target, links in zip(test.sources, test.targets, aligned, strict=True):
        numbered = [(_word(source, link.source[0]), _word(target, link.target[0])) for link in links]
        served.append(frozenset(numbered))
        first: dict[int, Link] = {}
        for link in numbered:
            # The strongest of a target word stands first.
            first.setdefault(link[1], link)
        strongest.append(frozenset(first.values()))
    return {
        "set": name,
        "model": manifest.key,
        "precision": precision,
        "strongest": 100 * score_links(strongest, test.gold).aer,
        "served": 100 * score_links(served, test.gold).aer,
        "links": sum(map(len, served)),
    }


def _align(
    bundle: Bundle, precision: str, sources: list[str], targets: list[str]
) -> list[tuple[Alignment, ...]]:
    options = PairOptions(max_target_tokens=MAX_TARGET_TOKENS)
    pairs = [
        prepare_pair(source, target, bundle, options, None)
        for source, target in zip(sources, targets, strict=True)
    ]
    decoder = open_decoder(bundle, precision=precision, shortlist=False)
    with running_engine(decoder, beam_size=1) as engine:
        futures = iter(engine.submit([sentence for pair in pairs for sentence in pair.sentences]))
        return [
            complete_pair(pair, [next(futures).result() for _ in pair.sentences], bundle).alignments
            for pair in pairs
        ]


def _word(line: str, place: int) -> int:
    """The number of the word between spaces that a character stands in."""
    starts = [0, *(index + 1 for index, character in enumerate(line) if character == " ")]
    return bisect_right(starts, place) - 1
