"""Text with markup in it, as a row of pieces, and what of it is translated as one text."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dragoman_files.reading import ITEM_BYTES, Reading
from dragoman_files.spacing import BLANK, has_letters

Kind = Literal["text", "markup", "glue", "open", "close", "empty", "word", "break"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A range of the source. The pieces of a block follow each other without gaps."""

    start: int
    end: int
    kind: Kind
    """Text; markup, which bounds it; or glue, markup within one text that must stay, wherever it then is.

    Of a text that has its markup with it, too: the tags that open and close an element, something empty that
    a sentence is complete without, something that stands for a word of it, and a break that ends a sentence.
    """
    decode: Callable[[str], str] = str
    """The text that stands for a text's notation in the source."""
    name: str = ""
    """A tag's name: the next end tag of this name closes it."""
    output: str | None = None
    """The text in the translation in its place; None keeps the source's."""
    look: str = ""
    """Of a text in a format where each has its own: what comes before it for it to look like that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A run of pieces that is translated as one text."""

    start: int
    end: int
    text: str
    """All text in it, without markup."""
    glue: str
    """The text that follows the translation, in the source's notation."""
    pieces: tuple[Piece, ...]
    """The pieces of the run; elements nest."""


def runs(source: str, pieces: Iterable[Piece], reading: Reading) -> Iterator[Run]:
    """The texts of a block, which is bounded by blocks: those between markup, each without white space and
    tags at its ends.

    An element that is not closed in the text that it is opened in bounds that text, too.
    """
    of_text: list[Piece] = []
    bounded = _bounded(pieces, reading)
    num_held = 0
    for piece in (*bounded, None):
        if piece is not None and piece.kind != "markup":
            of_text.append(piece)
            continue
        run = _run(source, of_text)
        if run is not None:
            num_held += len(run.pieces)
            yield run
        of_text = []
    reading.give_back(ITEM_BYTES * (len(bounded) - num_held))


def _bounded(pieces: Iterable[Piece], reading: Reading) -> list[Piece]:
    """The pieces, in which elements nest and none is in a text in part: their tags are markup then."""
    result = []
    for piece in pieces:
        reading.take(ITEM_BYTES)
        result.append(piece)
    opened: list[int] = []

    def bound(indices: Iterable[int]) -> None:
        for index in indices:
            result[index] = replace(result[index], kind="markup")
        opened.clear()

    for index, piece in enumerate(result):
        if piece.kind == "open":
            opened.append(index)
        elif piece.kind == "markup":
            bound(opened)
        elif piece.kind == "close":
            if opened and result[opened[-1]].name == piece.name:
                opened.pop()
            else:
                bound([*opened, index])
    bound(opened)
    return result


def _run(source: str, pieces: Sequence[Piece]) -> Run | None:
    partners = _partners(pieces)
    first, last = 0, len(pieces) - 1
    while first <= last:
        if _is_outside(source, pieces[first]):
            first += 1
        elif _is_outside(source, pieces[last]):
            last -= 1
        elif partners.get(first) == last and pieces[last].output is None:
            first, last = first + 1, last - 1
        else:
            break
    within = list(pieces[first : last + 1])
    # Most rows of markup have no text at all.
    if not any(piece.kind in ("text", "break") for piece in within):
        return None
    start, end = within[0].start, within[-1].end
    if within[0].kind == "text":
        while source[start] in BLANK:
            start += 1
        within[0] = replace(within[0], start=start)
    if within[-1].kind == "text":
        while source[end - 1] in BLANK:
            end -= 1
        within[-1] = replace(within[-1], end=end)
    text = glue = ""
    for piece in within:
        if piece.kind == "glue":
            glue += source[piece.start : piece.end]
        elif piece.kind in ("text", "break"):
            text += piece.decode(source[piece.start : piece.end])
    if not has_letters(text):
        return None
    return Run(start=start, end=end, text=text, glue=glue, pieces=tuple(within))


def _partners(pieces: Sequence[Piece]) -> dict[int, int]:
    """Where each element that is opened is closed."""
    opened: list[int] = []
    partners = {}
    for index, piece in enumerate(pieces):
        if piece.kind == "open":
            opened.append(index)
        elif piece.kind == "close":
            partners[opened.pop()] = index
    return partners


def _is_outside(source: str, piece: Piece) -> bool:
    """Whether it stays where it is at the beginning or the end of a text."""
    if piece.kind == "text":
        return not source[piece.start : piece.end].strip(BLANK)
    return piece.kind in ("glue", "empty", "break")
