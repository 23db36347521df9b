"""Text with markup in it, as a row of pieces, and what of it is translated as one text."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dragoman.jobs.formats.spacing import BLANK, has_letters

Kind = Literal["text", "markup", "glue"]


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A range of the source. The pieces of a block follow each other without gaps."""

    start: int
    end: int
    kind: Kind
    """Text; markup, which bounds it; or glue, markup within one text that must stay, wherever it then is."""
    decode: Callable[[str], str] = str
    """The text that stands for a text's notation in the source."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What is translated as one text."""

    start: int
    end: int
    text: str
    glue: str
    """What has to follow the translation, in the source's notation."""


def runs(source: str, pieces: Iterable[Piece]) -> Iterator[Run]:
    """The texts of a block, which is bounded by blocks: those between markup, each without white space at its
    ends.

    This is where markup-aware translation has its place: a block with markup in it would be one text there,
    and its markup would come back around the words that it belongs to.
    """
    texts: list[Piece] = []
    for piece in (*pieces, None):
        if piece is not None and piece.kind != "markup":
            texts.append(piece)
            continue
        run = _run(source, texts)
        if run is not None:
            yield run
        texts = []


def _run(source: str, pieces: Sequence[Piece]) -> Run | None:
    first, last = 0, len(pieces) - 1
    while first <= last and _is_blank(source, pieces[first]):
        first += 1
    while first <= last and _is_blank(source, pieces[last]):
        last -= 1
    if first > last:
        return None
    start, end = pieces[first].start, pieces[last].end
    while source[start] in BLANK:
        start += 1
    while source[end - 1] in BLANK:
        end -= 1
    text = glue = ""
    for piece in pieces[first : last + 1]:
        raw = source[max(start, piece.start) : min(end, piece.end)]
        if piece.kind == "glue":
            glue += raw
        else:
            text += piece.decode(raw)
    return Run(start=start, end=end, text=text, glue=glue) if has_letters(text) else None


def _is_blank(source: str, piece: Piece) -> bool:
    return piece.kind == "glue" or not source[piece.start : piece.end].strip(BLANK)
