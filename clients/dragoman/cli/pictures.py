"""Word alignments of a hypothesis as pictures: in a terminal, and in files.

In a terminal source words stand across, as a staircase, target words down; the darker a cell, the more of the
target word's attention falls on the source word. Without room for all columns, one line a target word takes
its place.

              Guten
              │  Morgen
              │  │  .
    Good      ██ ░░
    morning   ░░ ██
    .               ██

A file needs matplotlib, which the bare install does not bring: it is imported when a picture is asked for.
"""

import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import click
from rich.cells import cell_len
from rich.text import Text

from dragoman.cli.failure import not_installed
from dragoman.translation import Alignment, Hypothesis

Span = tuple[int, int]

_RUN = re.compile(r"\S+")


def words(text: str) -> Iterator[Span]:
    """Ranges of the words, and of the punctuation before and after each, in order."""
    for run in _RUN.finditer(text):
        start, end = run.span()
        of_words = [position for position in range(start, end) if _is_of_a_word(text[position])]
        first, last = (of_words[0], of_words[-1] + 1) if of_words else (end, end)
        yield from (span for span in ((start, first), (first, last), (last, end)) if span[0] < span[1])


def _is_of_a_word(character: str) -> bool:
    """Whether it is a letter, a number or a mark on one."""
    return unicodedata.category(character)[0] in "LNM"


ATTENTION = "of a word's attention"
BELIEF = "believed in"
"""What a weight is a share of."""

_LEVELS = (0.75, 0.5, 0.25, 0.0)
_CELLS = ("██", "▓▓", "▒▒", "░░")
_ASCII_CELLS = ("##", "++", "--", "..")
_STYLES = ("bold green", "green", "yellow", "dim")
_COLUMN = 3


class Linked(Protocol):
    """A translation with its links, such as a hypothesis."""

    @property
    def text(self) -> str: ...

    @property
    def alignments(self) -> Sequence[Alignment]: ...


def alignment_picture(
    source: str, hypothesis: Linked, *, width: int, ascii_only: bool, weights: str = ATTENTION
) -> Text:
    """The picture, no wider than `width` cells where the words themselves allow."""
    links = hypothesis.alignments
    across = word_spans(source, {(link.source_start, link.source_end) for link in links})
    down = word_spans(hypothesis.text, {(link.target_start, link.target_end) for link in links})
    margin = max((cell_len(hypothesis.text[start:end]) for start, end in down), default=0) + 2
    needed = max(
        (
            margin + column * _COLUMN + max(cell_len(source[start:end]), 2)
            for column, (start, end) in enumerate(across)
        ),
        default=0,
    )
    if needed > width:
        return _list(source, hypothesis)
    picture = Text(no_wrap=True)
    stem = "|" if ascii_only else "│"
    for column, (start, end) in enumerate(across):
        picture.append(" " * margin + f"{stem:<{_COLUMN}}" * column, style="dim")
        picture.append(source[start:end] + "\n", style="cyan")
    weight_of = {_link_spans(link): link.weight for link in links}
    cells = _ASCII_CELLS if ascii_only else _CELLS
    for target in down:
        word = hypothesis.text[target[0] : target[1]]
        picture.append(word, style="bold")
        picture.append(" " * (margin - cell_len(word)))
        for origin in across:
            level = _level(weight_of.get((origin, target)))
            if level is None:
                picture.append(" " * _COLUMN)
            else:
                picture.append(f"{cells[level]:<{_COLUMN}}", style=_STYLES[level])
        picture.rstrip()
        picture.append("\n")
    picture.append(_legend(cells, weights), style="dim")
    return picture


def word_spans(text: str, linked: Iterable[Span]) -> list[Span]:
    """The linked words of a text and, between them, what stands there without a link."""
    spans: list[Span] = []
    end = 0
    for span in [*sorted(linked), (len(text), len(text))]:
        spans += [(end + first, end + last) for first, last in words(text[end : span[0]])]
        if span[0] < span[1]:
            spans.append(span)
        end = span[1]
    return spans


def _list(source: str, hypothesis: Linked) -> Text:
    lines = Text()
    for link in sorted(hypothesis.alignments, key=lambda link: (link.target_start, -link.weight)):
        lines.append(source[link.source_start : link.source_end], style="cyan")
        lines.append(" -> ")
        lines.append(hypothesis.text[link.target_start : link.target_end], style="bold")
        lines.append(f" ({link.weight:.2f})\n", style="dim")
    lines.rstrip()
    return lines


def _link_spans(link: Alignment) -> tuple[Span, Span]:
    return (link.source_start, link.source_end), (link.target_start, link.target_end)


def _level(weight: float | None) -> int | None:
    if weight is None:
        return None
    return next((level for level, least in enumerate(_LEVELS) if weight >= least), None)


def _legend(cells: tuple[str, ...], weights: str) -> str:
    shades = [f"{cell} {least:.0%}+" for cell, least in zip(cells[:-1], _LEVELS, strict=False)]
    return "  ".join([*shades, f"{cells[-1]} less", weights])


FORMATS = (".png", ".svg", ".pdf")
MAX_WORDS = 300
"""Words a side that a picture may have; more could not be read, nor held in memory."""

_CELL_INCHES = 0.22
_MARGIN_INCHES = 1.3


def check_heat_map(path: Path) -> None:
    """Raises ClickException where a picture can't be written: before anything is translated."""
    if path.suffix.lower() not in FORMATS:
        raise click.ClickException(f"--heatmap is {path}, but its name must end in {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise click.ClickException(f"--heatmap is {path}, but there is no folder {path.parent}")
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise not_installed("`--heatmap`", error.name or "matplotlib", "plot") from error


def write_heat_map(source: str, hypothesis: Hypothesis, path: Path) -> bool:
    """Writes a picture with a column a source word and a row a target word, black where all attention falls.

    The same hypothesis gives the same bytes. Returns whether the font has every character.
    Raises ValueError for more than `MAX_WORDS` words, OSError.
    """
    import matplotlib
    from matplotlib.figure import Figure

    links = hypothesis.alignments
    across = word_spans(source, {(link.source_start, link.source_end) for link in links})
    down = word_spans(hypothesis.text, {(link.target_start, link.target_end) for link in links})
    if not across or not down:
        raise ValueError(f"{path} can't be drawn: the text or its translation has no word")
    if max(len(across), len(down)) > MAX_WORDS:
        raise ValueError(
            f"{path} would have {len(across)} by {len(down)} words, but a picture holds {MAX_WORDS} a side: "
            "give fewer sentences at once"
        )
    weights = [[0.0] * len(across) for _ in down]
    for link in links:
        row = down.index((link.target_start, link.target_end))
        weights[row][across.index((link.source_start, link.source_end))] = link.weight
    size = (len(across) * _CELL_INCHES + _MARGIN_INCHES, len(down) * _CELL_INCHES + _MARGIN_INCHES)
    with matplotlib.rc_context(), warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", "Glyph .* missing from")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "dragoman", "font.size": 9.0})
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        axes.imshow(weights, cmap="Greys", vmin=0.0, vmax=1.0, interpolation="nearest", aspect="equal")
        words = [source[start:end] for start, end in across]
        axes.set_xticks(range(len(words)), words, rotation=90, parse_math=False)
        words = [hypothesis.text[start:end] for start, end in down]
        axes.set_yticks(range(len(words)), words, parse_math=False)
        axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        figure.savefig(path, dpi=110, metadata=_no_date(path))
    return not any("missing from" in str(warning.message) for warning in caught)


def _no_date(path: Path) -> dict[str, None]:
    """The metadata that each format leaves out, so that the file is the same every day."""
    match path.suffix.lower():
        case ".png":
            return {"Software": None}
        case ".svg":
            return {"Date": None, "Creator": None}
        case _:
            return {"CreationDate": None, "Creator": None, "Producer": None}
