"""Sentence pairs whose links people drew, and the corpora to learn from."""

from dataclasses import dataclass
from pathlib import Path

import click

from dragoman_training.alignment.corpus.text import WordRule, read_lines
from dragoman_training.alignment.output.pharaoh import GoldLinks, read_gold


@dataclass(frozen=True, kw_only=True)
class GoldSet:
    """Where its files are, in the folder of data."""

    source: str
    """Languages."""
    target: str
    corpus: str
    """Stem of the corpus; a language is its suffix."""
    test: str
    """Stem of what was linked by hand, tokenised already; its links have the suffix `gold`."""


SETS = {
    "de-en": GoldSet(
        source="de", target="en", corpus="tatoeba-de-en/train", test="alignment/de-en-bicici/test"
    ),
    "fr-en": GoldSet(
        source="fr", target="en", corpus="tatoeba-en-fr/train", test="alignment/fr-en-alibi/test"
    ),
    "en-es": GoldSet(source="en", target="es", corpus="tatoeba-en-es/train", test="alignment/en-es-xlwa/dev"),
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
    """What was linked by hand, its words in their own case between single spaces."""

    sources: list[str]
    targets: list[str]
    gold: list[GoldLinks]


def read_test(name: str, data: Path) -> Test:
    """The texts of a gold set. Raises ClickException where a file is missing."""
    gold_set = SETS[name]
    sources, targets = (
        [" ".join(line.split()) for line in _lines(data / f"{gold_set.test}.{language}")]
        for language in (gold_set.source, gold_set.target)
    )
    return Test(sources=sources, targets=targets, gold=read_gold(data / f"{gold_set.test}.gold"))


def prepare(name: str, data: Path, folder: Path, limit: int | None) -> Task:
    """Writes the text. Raises ClickException where a file is missing or ends before its other side."""
    gold_set = SETS[name]
    sides = []
    for language in (gold_set.source, gold_set.target):
        test = [line.lower().split() for line in _lines(data / f"{gold_set.test}.{language}")]
        lines = _lines(data / f"{gold_set.corpus}.{language}")[:limit]
        rule = WordRule(tokenize=True)
        path = folder / f"{name}.{language}"
        sentences = test + [rule.normalize(line) for line in lines]
        path.write_text("".join(" ".join(words) + "\n" for words in sentences), "utf-8")
        sides.append((path, len(sentences)))
    gold = read_gold(data / f"{gold_set.test}.gold")
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
