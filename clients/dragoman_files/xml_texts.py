"""Texts of XML, by a table of a format's elements: which are paragraphs, and what stands within them.

Where a table has no row of looks, the elements within a paragraph are around its words, as in HTML.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from dragoman_files.document import Segment
from dragoman_files.format import ITEM_BYTES, FileError, Reading
from dragoman_files.tags import Encode, Kind, Piece, Run, Tagged, encode_with, runs
from dragoman_files.texts import collapse, unescape
from dragoman_files.xml_events import Event, escape, events

_NEWLINE = re.compile(r"(\r?\n)")
_CDATA = "cdata"
"""The name of a piece of text that has no references."""

Paragraph = Sequence[Event | None]
"""The events of a paragraph without its tags; None for a paragraph within it, as of a text box."""


def tag_pieces(source: str, paragraph: Paragraph, grammar: "Grammar", reading: Reading) -> list[Piece]:
    """The pieces of a paragraph. An element that has a paragraph within it bounds the text around it."""
    pieces: list[Piece] = []
    opened: list[int] = []
    last_paragraph = -1
    for event in paragraph:
        if event is None:
            last_paragraph = len(pieces)
            pieces.append(Piece(start=0, end=0, kind="markup"))
        elif event.kind in ("text", "cdata"):
            pieces += text_pieces(source, event, join=grammar.joins or bool(reading.options.join_lines))
        elif event.kind == "other":
            pieces.append(Piece(start=event.start, end=event.end, kind="markup"))
        elif event.kind == "start":
            opened.append(len(pieces))
            kind: Kind = "open" if event.name in grammar.around else "markup"
            pieces.append(Piece(start=event.start, end=event.end, kind=kind, name=event.name))
        elif event.name in grammar.around:
            opened.pop()
            pieces.append(Piece(start=event.start, end=event.end, kind="close", name=event.name))
        elif (first := opened.pop()) > last_paragraph and event.name not in grammar.bounds:
            kind = "empty" if event.name in grammar.empty else "word"
            pieces[first:] = [Piece(start=pieces[first].start, end=event.end, kind=kind)]
        else:
            pieces.append(Piece(start=event.start, end=event.end, kind="markup"))
    return pieces


def _write_tags(source: str, run: Run, tagged: Tagged, translation: str) -> str:
    return tagged.write(translation)


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """What the elements of a format are, by their names without prefix."""

    paragraphs: frozenset[str]
    """Elements around a text."""
    around: frozenset[str] = frozenset()
    """Elements around words of it."""
    empty: frozenset[str] = frozenset()
    """Elements that a sentence is complete without, with all that is in them. Any other stands for a word."""
    bounds: frozenset[str] = frozenset()
    """Elements that end a text."""
    is_left_out: Callable[[Event], bool] = lambda start: False
    """Whether nothing in an element is a paragraph, by its start tag."""
    root: str = ""
    """The element around all; empty where that is known otherwise."""
    joins: bool = True
    """Whether white space is a space, line breaks too."""
    pieces: Callable[[str, Paragraph, "Grammar", Reading], Iterable[Piece]] = tag_pieces
    """The pieces of a paragraph."""
    write: Callable[[str, Run, Tagged, str], str] = _write_tags
    """The translation of a text in the notation of the file."""
    escape: Callable[[str], str] = str
    """The format's own escapes, which stand within those of XML."""


def segments(source: str, reading: Reading, *, grammar: Grammar) -> Iterator[Segment]:
    """The texts of a document, a paragraph within another one before the end of that."""
    for paragraph in _paragraphs(events(source, reading.check), grammar, reading):
        for run in runs(source, grammar.pieces(source, paragraph, grammar, reading), reading):
            tagged = Tagged(source, run, _encoder(run, grammar))
            yield Segment(
                start=run.start,
                end=run.end,
                text=collapse(tagged.html) if grammar.joins else tagged.html,
                readable=run.text,
                write=functools.partial(grammar.write, source, run, tagged),
            )
        reading.give_back(ITEM_BYTES * len(paragraph))


def _encoder(run: Run, grammar: Grammar) -> Encode:
    write = in_cdata if is_cdata(run) else escape
    # Line breaks of the source that count are tags of their own.
    return encode_with(lambda text: write(grammar.escape(text.replace("\n", " "))))


def is_cdata(run: Run) -> bool:
    """Whether a text begins within CDATA, which has no references."""
    return run.pieces[0].name == _CDATA


def in_cdata(text: str) -> str:
    """The text as CDATA holds it."""
    return text.replace("]]>", "]]]]><![CDATA[>")


def _paragraphs(found: Iterable[Event], grammar: Grammar, reading: Reading) -> Iterator[Paragraph]:
    """Raises FileError for a document of another root."""
    open_: list[list[Event | None]] = []
    root = grammar.root
    # How deep in elements that are left out.
    depth = 0
    for event in found:
        is_start = event.kind == "start"
        if is_start and root and event.name != root:
            raise FileError(f"its root is <{event.name[:80]}>, not <{root}>")
        root = "" if is_start else root
        if depth or (is_start and grammar.is_left_out(event)):
            depth += {"start": 1, "end": -1}.get(event.kind, 0)
        elif event.name in grammar.paragraphs and is_start:
            if open_:
                open_[-1].append(None)
            open_.append([])
            continue
        elif event.name in grammar.paragraphs and event.kind == "end":
            yield open_.pop()
            continue
        if open_:
            reading.take(ITEM_BYTES)
            open_[-1].append(event)


def text_pieces(source: str, event: Event, *, join: bool) -> Iterator[Piece]:
    """A text, in which each line break is a piece of its own."""
    decode, name = (unescape, "") if event.kind == "text" else (str, _CDATA)
    start = event.start
    for number, part in enumerate(_NEWLINE.split(source[start : event.end])):
        end = start + len(part)
        if number % 2:
            yield Piece(
                start=start,
                end=end,
                kind="text" if join else "break",
                decode=lambda raw: " " if join else "\n",
            )
        elif part:
            yield Piece(start=start, end=end, kind="text", decode=decode, name=name)
        start = end
