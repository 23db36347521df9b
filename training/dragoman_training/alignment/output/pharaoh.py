"""Links as text: "0-0 1-2", a line for a sentence pair; gold ones are sure, or possible as in "3p4"."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dragoman_training.alignment.corpus.text import read_lines

Link = tuple[int, int]
"""Source and target position, from 0 on."""
_LINK = re.compile(r"(\d{1,9})([-p])(\d{1,9})", re.ASCII)


@dataclass(frozen=True)
class GoldLinks:
    """The links of a sentence pair that people drew."""

    sure: frozenset[Link] = field(default_factory=frozenset)
    possible: frozenset[Link] = field(default_factory=frozenset)
    """The sure ones among them."""


def format_links(links: Iterable[Link]) -> str:
    """A line, in the order of the source."""
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def read_links(path: Path) -> list[frozenset[Link]]:
    """The links of each line. Raises ValueError for what is none."""
    result = []
    for number, line in enumerate(read_lines(path), 1):
        gold = _parse(line, path, number)
        if gold.possible != gold.sure:
            raise ValueError(f"{path}, line {number}: possible links (3p4) belong into the gold file only")
        result.append(gold.sure)
    return result


def read_gold(path: Path) -> list[GoldLinks]:
    """The same for gold links."""
    return [_parse(line, path, number) for number, line in enumerate(read_lines(path), 1)]


def _parse(line: str, path: Path, number: int) -> GoldLinks:
    sure, possible = set(), set()
    for word in line.split():
        match = _LINK.fullmatch(word)
        if match is None:
            raise ValueError(f"{path}, line {number}: {word!r} is no link: write 0-2, or 0p2 in a gold file")
        link = (int(match[1]), int(match[3]))
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldLinks(frozenset(sure), frozenset(possible))
