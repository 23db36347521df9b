"""XML: the events of its parser, each with its range of the source; and its texts, by a format's table.

A table says which elements are paragraphs, and what stands within them. Where it has no row of looks, the
elements within a paragraph are around its words, as in HTML.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from xml.parsers import expat

from dragoman_files.document import Segment
from dragoman_files.format import ITEM_BYTES, FileError, Reading
from dragoman_files.tags import Encode, Kind, Notations, Piece, Run, Write, encode_with, runs
from dragoman_files.texts import unescape

_NEWLINE = re.compile(r"(\r?\n)")
_CDATA = "cdata"
"""The name of a piece of text that has no references."""

DECLARED = re.compile(
    rb"""\A(?:\xef\xbb\xbf)?\s*<\?xml\s[^>]*?encoding\s*=\s*["'](?!(?i:utf-16))([\w.:-]+)"""
)
"""The encoding that a file declares. That of UTF-16 is said by whoever asks for it, too."""
_ILLEGAL = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that XML 1.0 (section 2.2) can't write."""
_MIN_PART_BYTES = 1 << 16
_MAX_PARTS = 32
"""A document is parsed in so many parts at most, and events of one are held at once."""


EventKind = Literal["start", "end", "text", "cdata", "other"]


@dataclass(frozen=True, slots=True)
class Event:
    """A start tag, an end tag, characters, or anything else."""

    start: int
    end: int
    kind: EventKind
    """An element without content has two, of which the second is empty. "cdata" is text that has no
    references, "other" all that is not for readers, such as comments and the brackets of CDATA."""
    name: str = ""
    """A tag's name without its prefix."""
    attributes: tuple[str, ...] = ()
    """A start tag's attributes, with prefixes: the name and the value of each."""

    def pairs(self) -> Iterator[tuple[str, str]]:
        return zip(self.attributes[::2], self.attributes[1::2], strict=True)

    def attribute(self, name: str) -> str | None:
        """The value of an attribute, by its name with its prefix."""
        names = self.attributes[::2]
        return self.attributes[2 * names.index(name) + 1] if name in names else None


def events(source: str, check: Callable[[], None] = lambda: None) -> Iterator[Event]:
    """All of a document, in order and without gaps. Raises FileError for what is not well-formed XML.

    A document that declares entities is refused: they could make much out of little. `check` is called before
    each part of it is read.
    """
    # Its positions are of bytes.
    content = source.encode()
    reader = _Reader()
    start = num_bytes = 0
    last: _RawEvent | None = None
    # What a part cuts off is read again with the next one, so their number is bounded.
    size = max(_MIN_PART_BYTES, len(content) // _MAX_PARTS + 1)
    for begin in range(0, max(1, len(content)), size):
        check()
        try:
            reader.parser.Parse(content[begin : begin + size], begin + size >= len(content))
        except expat.ExpatError as error:
            place = f"line {error.lineno}, column {error.offset + 1}"
            raise FileError(f"no well-formed XML: {expat.ErrorString(error.code)} at {place}") from None
        for position, event in reader.events:
            end = start + len(content[num_bytes:position].decode())
            if last is not None:
                yield Event(start, end, *last)
            last, start, num_bytes = event, end, position
        reader.events.clear()
    if last is not None:
        yield Event(start, len(source), *last)


def escape(text: str) -> str:
    """The text as characters of XML."""
    text = _ILLEGAL.sub("", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_RawEvent = tuple[EventKind, str, tuple[str, ...]]


class _Reader:
    """Notes where everything begins."""

    def __init__(self) -> None:
        # What the declaration says is of the file, not of this text.
        self.parser = parser = expat.ParserCreate("utf-8")
        self.events: list[tuple[int, _RawEvent]] = []
        self._is_cdata = False
        parser.buffer_text = False
        parser.ordered_attributes = True
        parser.StartElementHandler = lambda name, attributes: self._note("start", name, attributes)
        parser.EndElementHandler = lambda name: self._note("end", name)
        parser.CharacterDataHandler = lambda text: self._note("cdata" if self._is_cdata else "text")
        parser.StartCdataSectionHandler = lambda: self._cdata(True)
        parser.EndCdataSectionHandler = lambda: self._cdata(False)
        parser.CommentHandler = lambda text: self._note("other")
        parser.ProcessingInstructionHandler = lambda target, text: self._note("other")
        parser.XmlDeclHandler = lambda *declaration: self._note("other")
        parser.EntityDeclHandler = self._entity

    def _cdata(self, begins: bool) -> None:
        self._is_cdata = begins
        self._note("other")

    def _entity(self, name: str, *declaration: object) -> None:
        raise FileError(f"it declares an entity, {name[:80]!r}; write out what it stands for")

    def _note(self, kind: EventKind, name: str = "", attributes: Iterable[str] = ()) -> None:
        event = kind, name.rpartition(":")[2], tuple(attributes)
        self.events.append((self.parser.CurrentByteIndex, event))


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
    write: Write = Run.write
    """The translation of a text in the notation of the file."""
    escape: Callable[[str], str] = str
    """The format's own escapes, which stand within those of XML."""

    def segments(self, source: str, reading: Reading) -> Iterator[Segment]:
        """The texts of a document, a paragraph within another one before the end of that.

        Raises FileError.
        """
        # Line breaks of the source that count are tags of their own.
        encode = encode_within(lambda text: self.escape(text.replace("\n", " ")))
        for paragraph in _paragraphs(events(source, reading.check), self, reading):
            for run in runs(source, self.pieces(source, paragraph, self, reading), reading, encode):
                segment = run.segment(self.write)
                yield segment if self.joins else replace(segment, text=run.html)
            reading.give_back(ITEM_BYTES * len(paragraph))


def encode_within(own: Callable[[str], str] = str) -> Encode:
    """An encoder for XML, by whether the text begins within CDATA; a format's `own` escapes are within."""

    def encode(run: Run, text: str, notations: Notations) -> str:
        def write(part: str) -> str:
            if run.pieces[0].name == _CDATA:
                return own(part).replace("]]>", "]]]]><![CDATA[>")
            return escape(own(part))

        return encode_with(write)(run, text, notations)

    return encode


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
            kind: Kind = "text" if join else "break"
            yield Piece(start=start, end=end, kind=kind, decode=lambda raw: " " if join else "\n")
        elif part:
            yield Piece(start=start, end=end, kind="text", decode=decode, name=name)
        start = end
