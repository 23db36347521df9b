"""The links of a sentence pair as a picture of plain characters: source words across, target words down."""

from collections.abc import Sequence
from unicodedata import combining, east_asian_width

from dragoman_training.alignment.output.symmetrization import Matrix

_COLUMN = 3


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
