"""Sentence pairs whose links people drew, and the corpora to learn from."""

from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.alignment.spelling import RULE, Spelled, spell
from dragoman_training.alignment.corpus.text import read_lines
from dragoman_training.alignment.output.pharaoh import GoldLinks, Link, read_gold


@dataclass(frozen=True, kw_only=True)
class GoldSet:
    """Where its files are, in the folder of data."""

    source: str
    """Languages."""
    target: str
    corpus: str
    """Folder of the corpus, with train and val; a language is their suffix."""
    test: str
    """Stem of what was linked by hand, tokenised already; its links have the suffix `gold`."""
    lowercase: bool = False
    """Whether the test has no capitals."""


SETS = {
    "de-en": GoldSet(
        source="de",
        target="en",
        corpus="tatoeba-de-en",
        test="alignment/de-en-bicici/test",
        lowercase=True,
    ),
    "fr-en": GoldSet(source="fr", target="en", corpus="tatoeba-en-fr", test="alignment/fr-en-alibi/test"),
    "en-es": GoldSet(source="en", target="es", corpus="tatoeba-en-es", test="alignment/en-es-xlwa/dev"),
}
"""By language pair."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A text to learn from. Its first lines are those that are scored: without their links, as is custom."""

    name: str
    source: Path
    """Words in lower case between spaces, the same for every system."""
    target: Path
    num_pairs: int
    gold: list[GoldLinks]


@dataclass(frozen=True, kw_only=True)
class Test:
    """Texts whose words are linked: as people write them, for models that learnt from such."""

    sources: list[Spelled]
    targets: list[Spelled]
    gold: list[GoldLinks]

    def turned(self) -> "Test":
        """Of the other direction."""
        gold = [GoldLinks(sure=_turned(links.sure), possible=_turned(links.possible)) for links in self.gold]
        return Test(sources=self.targets, targets=self.sources, gold=gold)


def read_test(name: str, data: Path) -> Test:
    """The texts of a gold set. Raises ClickException where a file is missing."""
    gold_set = SETS[name]
    sources, targets = (
        spell(
            [line.split() for line in _lines(data / f"{gold_set.test}.{language}")],
            _lines(data / f"{gold_set.corpus}/train.{language}") if gold_set.lowercase else None,
        )
        for language in (gold_set.source, gold_set.target)
    )
    return Test(sources=sources, targets=targets, gold=read_gold(data / f"{gold_set.test}.gold"))


def _turned(links: frozenset[Link]) -> frozenset[Link]:
    return frozenset((j, i) for i, j in links)


def read_val(name: str, data: Path) -> Test:
    """The validation text of a corpus, without links. Raises ClickException where a file is missing."""
    gold_set = SETS[name]
    sources, targets = (
        [
            Spelled(text=line, starts=tuple(start for start, _ in RULE.spans(line)))
            for line in _lines(data / f"{gold_set.corpus}/val.{language}")
        ]
        for language in (gold_set.source, gold_set.target)
    )
    return Test(sources=sources, targets=targets, gold=[GoldLinks() for _ in sources])


def prepare_val(name: str, data: Path, folder: Path) -> Task:
    """Writes the validation text and the corpus. Raises ClickException as `prepare`."""
    gold_set = SETS[name]
    val = [
        [RULE.normalize(line) for line in _lines(data / f"{gold_set.corpus}/val.{language}")]
        for language in (gold_set.source, gold_set.target)
    ]
    return _write(SETS[name], data, folder / f"{name}-val", None, val, [GoldLinks() for _ in val[0]])


def prepare(name: str, data: Path, folder: Path, limit: int | None) -> Task:
    """Writes the text. Raises ClickException where a file is missing or ends before its other side."""
    gold_set = SETS[name]
    test = [
        [line.lower().split() for line in _lines(data / f"{gold_set.test}.{language}")]
        for language in (gold_set.source, gold_set.target)
    ]
    return _write(gold_set, data, folder / name, limit, test, read_gold(data / f"{gold_set.test}.gold"))


def _write(
    gold_set: GoldSet,
    data: Path,
    stem: Path,
    limit: int | None,
    test: list[list[list[str]]],
    gold: list[GoldLinks],
) -> Task:
    name = stem.name
    sides = []
    for language, first in zip((gold_set.source, gold_set.target), test, strict=True):
        lines = _lines(data / f"{gold_set.corpus}/train.{language}")[:limit]
        path = stem.with_name(f"{name}.{language}")
        sentences = first + [RULE.normalize(line) for line in lines]
        path.write_text("".join(" ".join(words) + "\n" for words in sentences), "utf-8")
        sides.append((path, len(sentences)))
    (source, num_pairs), (target, num_targets) = sides
    if num_pairs != num_targets:
        raise click.ClickException(f"{name}: {num_pairs} source lines and {num_targets} target lines")
    return Task(name=name, source=source, target=target, num_pairs=num_pairs, gold=gold)


def _lines(path: Path) -> list[str]:
    try:
        return list(read_lines(path))
    except OSError as error:
        raise click.ClickException(
            f"{path} cannot be read: {error.strerror}. docs/alignment.md says where it is from; "
            "--data names another folder"
        ) from error
