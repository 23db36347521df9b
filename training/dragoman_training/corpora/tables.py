"""The tables that training text is made by: the corpora that are read, and the words and sentences of pairs.

Also choices that depend on a text alone: neither order nor other texts change them.
"""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar

from dragoman_bundle.codec import decode

from dragoman_training.data import files as corpus_files
from dragoman_training.data.corpus import CorpusError

T = TypeVar("T")
Pair = tuple[str, str]
"""English, and the other language."""


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("dragoman_training.corpora").joinpath(name).read_text(encoding="utf-8"))


def words() -> dict[str, Any]:
    """The tables of `words.toml`, which says what is in them."""
    return _read("words.toml")


@cache
def stop_words(language: str) -> frozenset[str]:
    """Words by which a text of the language is recognised."""
    return frozenset(words()["stop_words"][language].split())


def draw(text: str, purpose: str) -> float:
    """A number in [0, 1) that is always the same for the text and the purpose."""
    digest = blake2b(f"{purpose}\0{text}".encode(), digest_size=7).digest()
    return int.from_bytes(digest, "big") / 2**56


def pick(choices: Sequence[T], text: str, purpose: str) -> T:
    """One of the choices, always the same for the text and the purpose."""
    return choices[int(draw(text, purpose) * len(choices))]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A corpus of pairs."""

    name: str
    """The corpus' name in the report."""
    files: tuple[str, ...]
    """Below the data's folder, with `{other}` for the language that is not English: a tab-separated file with
    English first, or a file for each language that ends in `{side}`. Each that there is is read."""
    short_times: int = 1
    """How many times pairs of at most four words are written."""
    has_paragraphs: bool = False
    """Whether lines hold several sentences, which are parted."""
    is_tokenized: bool = False
    """Whether spaces stand around punctuation."""
    is_raw: bool = False
    """Whether pairs are taken as they are."""
    only_source: bool = False
    """Whether the other language's side was written by a machine and is never translated into."""
    is_optional_target: bool = False
    """Whether the other language's side is translated into where that is asked for alone (`--with`)."""
    is_interface: bool = False
    """Whether some short strings are held out, to measure with."""
    licence: str
    credit: str


@cache
def sources() -> tuple[Source, ...]:
    """All of them, the cleanest first: of equal pairs the first is used."""
    return tuple(decode(Source, table) for table in _read("corpora.toml")["sources"])


def paths_of(kind: Literal["dictionaries", "prose", "test_sets"], folder: Path, language: str) -> list[Path]:
    """The dictionaries or novels there are, or the files of which no training pair may have a line."""
    patterns = (pattern.format(other=language) for pattern in _read("corpora.toml")[kind])
    return [path for pattern in patterns for path in sorted(folder.glob(pattern))]


def read_pairs(source: Source, folder: Path, language: str) -> Iterator[Pair]:
    """The pairs of a corpus as they lie in its files; none where it has no file for the language."""
    for pattern in source.files:
        names = dict.fromkeys(pattern.format(other=language, side=side) for side in ("en", language))
        both = [[path for end in ("", ".gz") if (path := folder / f"{name}{end}").exists()] for name in names]
        paths = [found[0] for found in both if found]
        if len(paths) < len(names):
            continue
        if len(paths) == 2:
            yield from corpus_files.read_pairs(*paths)
            continue
        for number, line in enumerate(corpus_files.read_lines(paths[0]), start=1):
            english, tab, other = line.partition("\t")
            if not tab:
                raise CorpusError(f"{paths[0]}, line {number}, has no tab between its sides: {line[:80]!r}")
            yield english, other
