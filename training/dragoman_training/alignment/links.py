"""Links between words: joined from two directions, written, drawn, and scored against those that people drew.

The alignment of a sentence pair is a matrix of booleans, source position by target position; as text it is
"0-0 1-2", a line for a sentence pair, where gold links are sure, or possible as in "3p4".
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args
from unicodedata import combining, east_asian_width

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.data.files import read_lines

Link = tuple[int, int]
"""Source and target position, from 0 on."""
Matrix = NDArray[np.bool_]
Method = Literal[
    "grow-diag-final-and", "grow-diag-final", "grow-diag", "intersection", "union", "forward", "backward"
]
METHODS: tuple[Method, ...] = get_args(Method)
_LINK = re.compile(r"(\d{1,9})([-p])(\d{1,9})", re.ASCII)
_COLUMN = 3


def symmetrize(forward: Matrix, backward: Matrix, method: Method) -> Matrix:
    """One alignment from two (Och & Ney 2003, section 4; Koehn et al. 2003, section 3)."""
    alignment, union = forward & backward, forward | backward
    plain = {"forward": forward, "backward": backward, "intersection": alignment, "union": union}
    if method in plain:
        return plain[method]
    _grow(alignment, union)
    if method != "grow-diag":
        for direction in (forward, backward):
            _finish(alignment, direction, method == "grow-diag-final-and")
    return alignment


@njit(cache=True, nogil=True)
def _grow(alignment: Matrix, union: Matrix) -> None:
    """Adds adjacent links of the union, as long as one has a word that is not aligned yet."""
    num_sources, num_targets = alignment.shape
    source_aligned, target_aligned = np.zeros(num_sources, np.bool_), np.zeros(num_targets, np.bool_)
    for i in range(num_sources):
        for j in range(num_targets):
            source_aligned[i] |= alignment[i, j]
            target_aligned[j] |= alignment[i, j]
    growing = True
    while growing:
        growing = False
        for i in range(num_sources):
            for j in range(num_targets):
                if not alignment[i, j]:
                    continue
                for down in (-1, 0, 1):
                    for right in (-1, 0, 1):
                        k, n = i + down, j + right
                        if not (0 <= k < num_sources and 0 <= n < num_targets):
                            continue
                        if not union[k, n] or alignment[k, n] or (source_aligned[k] and target_aligned[n]):
                            continue
                        alignment[k, n] = source_aligned[k] = target_aligned[n] = growing = True


@njit(cache=True, nogil=True)
def _finish(alignment: Matrix, direction: Matrix, both: bool) -> None:
    """Adds links of a direction between words of which one, or both, are not aligned yet."""
    num_sources, num_targets = alignment.shape
    for i in range(num_sources):
        for j in range(num_targets):
            if direction[i, j] and not alignment[i, j]:
                source_open, target_open = not alignment[i].any(), not alignment[:, j].any()
                if (source_open and target_open) or (not both and (source_open or target_open)):
                    alignment[i, j] = True


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
    """The gold links of each line. Raises ValueError for what is none."""
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


def draw_links(source: Sequence[str], target: Sequence[str], links: Matrix, *, ascii_only: bool) -> str:
    """`links` is [source, target]."""
    cell, stem = ("##", "|") if ascii_only else ("██", "│")
    margin = max(map(_width, target), default=0) + 2
    lines = [" " * margin + f"{stem:<{_COLUMN}}" * column + word for column, word in enumerate(source)]
    for j, word in enumerate(target):
        cells = "".join(f"{cell if links[i, j] else '':<{_COLUMN}}" for i in range(len(source)))
        lines.append((word + " " * (margin - _width(word)) + cells).rstrip())
    return "\n".join(lines)


def _width(word: str) -> int:
    """Cells of a terminal."""
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in word)


@dataclass(frozen=True, kw_only=True)
class Score:
    """How far links are from those that people drew (Och & Ney 2003, section 5.1).

    With A the links, S the sure and P the possible ones.
    """

    precision: float
    """|A ∩ P| / |A|; 1 where there are no links."""
    recall: float
    """|A ∩ S| / |S|; 1 where nothing is sure."""
    aer: float
    """Alignment error rate, 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)."""


def score_links(links: Sequence[frozenset[Link]], gold: Sequence[GoldLinks]) -> Score:
    """Precision, recall and error rate over sentence pairs, as many of both."""
    num_links, num_sure = sum(map(len, links)), sum(len(drawn.sure) for drawn in gold)
    both = list(zip(links, gold, strict=True))
    sure_found = sum(len(found & drawn.sure) for found, drawn in both)
    possible_found = sum(len(found & drawn.possible) for found, drawn in both)
    total = num_links + num_sure
    return Score(
        precision=possible_found / num_links if num_links else 1.0,
        recall=sure_found / num_sure if num_sure else 1.0,
        aer=1 - (sure_found + possible_found) / total if total else 0.0,
    )


def check_range(path: Path, links: Sequence[frozenset[Link]], sizes: Sequence[tuple[int, int]]) -> None:
    """Raises ValueError, with the line, for a link of a word that its sentence pair does not have."""
    for number, (found, (num_sources, num_targets)) in enumerate(zip(links, sizes, strict=True), 1):
        for i, j in sorted(found):
            if i >= num_sources or j >= num_targets:
                raise ValueError(
                    f"{path}, line {number}: link {i}-{j} is out of range: of {num_sources} source "
                    f"and {num_targets} target words the first is 0"
                )
