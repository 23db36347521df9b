"""Sentence pairs whose links people drew, and the corpora to learn from."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import MeasurementError
from dragoman_training.alignment.bitext import WordRule
from dragoman_training.alignment.links import GoldLinks, Link, read_gold
from dragoman_training.classics.smt.system import Casing
from dragoman_training.data.files import read_lines

RULE = WordRule(tokenize=True)
"""What is a word of a corpus."""
_JOINS_LEFT = re.compile(r"[.,;:!?)\]»”…%]|'(s|m|d|t|re|ve|ll)\b", re.IGNORECASE)
_JOINS_RIGHT = re.compile(r"[(\[«“¿¡]|\w+['’]")


@dataclass(frozen=True, kw_only=True)
class Spelled:
    """A line, and where its words begin."""

    text: str
    starts: tuple[int, ...]

    def words(self, span: tuple[int, int]) -> range:
        """The numbers of the words that a range of characters touches."""
        first, last = (bisect_right(self.starts, place) - 1 for place in (span[0], span[1] - 1))
        return range(max(first, 0), last + 1)


def spell(lines: Iterable[Sequence[str]], corpus: Iterable[str] | None) -> list[Spelled]:
    """Words as lines. With a corpus they have the capitals that are usual there, a line's first has one."""
    capitals = {} if corpus is None else Casing.of(map(RULE.split, corpus)).form
    result = []
    for words in lines:
        text, starts = "", []
        for number, word in enumerate(words):
            written = capitals.get(word, word)
            if number == 0 and corpus is not None:
                written = written[:1].upper() + written[1:]
            joins = number == 0 or _JOINS_LEFT.match(word) or _JOINS_RIGHT.fullmatch(words[number - 1])
            text += "" if joins else " "
            starts.append(len(text))
            text += written
        result.append(Spelled(text=text, starts=tuple(starts)))
    return result


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
"""The sets by language pair."""


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
        """The same test in the other direction."""
        gold = [GoldLinks(sure=_turned(links.sure), possible=_turned(links.possible)) for links in self.gold]
        return Test(sources=self.targets, targets=self.sources, gold=gold)


def read_test(name: str, data: Path) -> Test:
    """The texts of a gold set. Raises MeasurementError where a file is missing."""
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


def prepare(name: str, data: Path, folder: Path, limit: int | None) -> Task:
    """Writes the text. Raises MeasurementError where a file is missing or ends before its other side."""
    gold_set = SETS[name]
    sides = []
    for language in (gold_set.source, gold_set.target):
        sentences = [line.lower().split() for line in _lines(data / f"{gold_set.test}.{language}")]
        corpus = _lines(data / f"{gold_set.corpus}/train.{language}")[:limit]
        sentences += [RULE.normalize(line) for line in corpus]
        path = folder / f"{name}.{language}"
        path.write_text("".join(" ".join(words) + "\n" for words in sentences), "utf-8")
        sides.append((path, len(sentences)))
    (source, num_pairs), (target, num_targets) = sides
    if num_pairs != num_targets:
        raise MeasurementError(f"{name}: {num_pairs} source lines and {num_targets} target lines")
    gold = read_gold(data / f"{gold_set.test}.gold")
    return Task(name=name, source=source, target=target, num_pairs=num_pairs, gold=gold)


def _lines(path: Path) -> list[str]:
    try:
        return list(read_lines(path))
    except OSError as error:
        raise MeasurementError(
            f"{path} cannot be read: {error.strerror}. docs/research/alignment.md says where it is from; "
            "--data names another folder"
        ) from error
