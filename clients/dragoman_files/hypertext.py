"""HTML: the texts between tags, block by block. Tags, attributes and what no reader sees stay to the byte."""

import html
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple

from dragoman_files.document import Segment
from dragoman_files.format import ITEM_BYTES, Reading
from dragoman_files.tags import Kind, Piece, Value, block_segments, encode_with
from dragoman_files.texts import ELEMENTS, has_letters, primary_language, unescape

Span = tuple[int, int]
_ELEMENTS = ELEMENTS["html"]
_REFERENCE = re.compile(r"&(?:#\w+|\w+);")
_DEPTHS = {"open": 1, "close": -1}
"""The change of depth by kind of tag."""
_TOKEN = re.compile(
    r"""
    <!--(?:-?>|(?:[^-]++|-(?!-!?>))*+--!?>)
    | <!\[CDATA\[(?:[^]]++|\](?!\]>))*+\]\]>
    | <!(?!--|\[CDATA\[)(?P<declaration>doctype)?[^>]*+>
    | </(?P<end>[A-Za-z][^\s/>]*+)[^>]*+>
    | <[?/][^>]*+>
    | <(?P<start>[A-Za-z][^\s/>]*+)
      (?P<attributes>(?:[^=>/]++|/(?!>)|=\s*+(?:"[^"]*+"|'[^']*+'|(?!["'])[^\s>]*+))*+)(?P<empty>/?)>
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What is no text (HTML's standard, 13.2.5), and CDATA, which XHTML has."""
_LINE = re.compile(r"[\r\n]++|[^\r\n]++")
_BEGIN_OF_TOKEN = re.compile("<(?=[A-Za-z/!?])")
_ATTRIBUTE = re.compile(r"""([^\s/>=][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]*+)))?+""")
_MAY_BE_READ = re.compile("|".join(("value", "content", *_ELEMENTS["read"])), re.IGNORECASE)
_ROOT = re.compile(r"<html\b[^<>]*>", re.IGNORECASE)
LANGUAGE = re.compile(r"""(\s(?:xml:)?lang\s*=\s*["']?)([\w-]+)""", re.IGNORECASE)
DECLARED = re.compile(rb"""<meta\s[^>]*charset\s*=\s*["']?\s*(?!utf-16)([\w.:-]+)""", re.IGNORECASE)
"""The encoding that a page declares. UTF-16 does not count: no page in it can be read so far."""


def prepare(source: str, reading: Reading) -> str:
    """The page, which says that it is in the target language."""
    write = renamed(reading)
    return _ROOT.sub(lambda tag: LANGUAGE.sub(write, tag[0]), source, count=1)


def renamed(reading: Reading, stated: str = "") -> Callable[[re.Match[str]], str]:
    """What is written for a match of `LANGUAGE`: the target's where it is the source's, or the one stated."""
    target = html.escape(reading.target_language or "")
    known = {primary_language(language) for language in (stated, reading.source_language or stated)}
    return lambda match: match[1] + (target if target and primary_language(match[2]) in known else match[2])


def segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The texts of a page or of a part of one."""
    encode = encode_with(partial(html.escape, quote=False))
    for pieces in _blocks(source, reading):
        yield from block_segments(source, pieces, reading, encode)


def _in_quotes(around: str, text: str) -> str:
    """A text as an attribute's value, in quotes of its own where none are around it."""
    quote = around or '"'
    written = html.escape(text, quote=False).replace(quote, f"&#{ord(quote)};")
    return written if around else f"{quote}{written}{quote}"


def _blocks(source: str, reading: Reading) -> Iterator[list[Piece]]:
    """The pieces between marks that bound sentences, with the mark behind them."""
    block: list[Piece] = []
    for mark in _Page(source).marks():
        reading.take(ITEM_BYTES * (1 + len(mark.values)))
        if mark.kind == "bound":
            yield [*_joined(block), replace(mark, kind="markup")]
            block = []
        else:
            block.append(mark)
    yield list(_joined(block))


def _joined(block: list[Piece]) -> Iterator[Piece]:
    """The pieces; untranslated ones are one, which stands for a word where it holds whole elements."""
    for kind, group in itertools.groupby(block, key=lambda piece: piece.kind):
        pieces = list(group)
        if kind != "markup":
            yield from pieces
            continue
        depths = list(itertools.accumulate(_DEPTHS.get(piece.name, 0) for piece in pieces))
        is_whole = min(depths) >= 0 and depths[-1] == 0
        yield Piece(start=pieces[0].start, end=pieces[-1].end, kind="word" if is_whole else "markup")


class Token(NamedTuple):
    """A part of a page."""

    kind: Literal["text", "reference", "raw", "open", "close", "empty", "unclosed"]
    """A text; a reference; a text in which there are no tags; the tags that begin and end an element; what
    has no content, such as a comment; and what the end cuts off."""
    start: int
    end: int
    name: str = ""
    """A tag's name in small letters; "!doctype" of a declaration."""
    values: tuple[Span, ...] = ()
    """The ranges of the texts that people read or hear in a tag's attributes."""
    is_translated: bool | None = None
    """What a tag says of its element; None where it says nothing."""


def tokens(source: str, position: int, raw: Collection[str], references: re.Pattern[str]) -> Iterator[Token]:
    """All of a page from a position on, without gaps; within `raw` elements there are no tags."""
    while (begin := _BEGIN_OF_TOKEN.search(source, position)) is not None:
        start = begin.start()
        yield from _texts(source, position, start, references)
        found = _TOKEN.match(source, start)
        if found is None:
            yield Token("unclosed", start, len(source))
            return
        position = found.end()
        if found["end"]:
            yield Token("close", start, position, found["end"].lower())
            continue
        name = "!doctype" if found["declaration"] else (found["start"] or "").lower()
        is_open = bool(found["start"]) and not found["empty"]
        kind: Literal["open", "empty"] = "open" if is_open else "empty"
        if not found["attributes"]:
            yield Token(kind, start, position, name)
        else:
            attributes = found.span("attributes")
            values = tuple(_values_read(name, source, attributes))
            yield Token(kind, start, position, name, values, _is_translated(source, attributes))
        if is_open and name in raw:
            end = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(source, position)
            stop = len(source) if end is None else end.start()
            if position < stop:
                yield Token("raw", position, stop)
            position = stop
    yield from _texts(source, position, len(source), references)


def _texts(source: str, start: int, end: int, references: re.Pattern[str]) -> Iterator[Token]:
    for found in references.finditer(source, start, end):
        if start < found.start():
            yield Token("text", start, found.start())
        yield Token("reference", *found.span())
        start = found.end()
    if start < end:
        yield Token("text", start, end)


def _stated(source: str, attributes: Span) -> dict[str, str]:
    """What attributes say, by their names; all in small letters."""
    return {
        match[1].lower(): (match[2] or match[3] or match[4] or "").lower()
        for match in _ATTRIBUTE.finditer(source, *attributes)
    }


def _values_read(tag: str, source: str, attributes: Span) -> Iterator[Span]:
    if not _MAY_BE_READ.search(source, *attributes):
        return
    known = _stated(source, attributes)
    kinds = {f"{tag}.{known.get(name)}" for name in ("type", "name", "property")}
    names = _ELEMENTS["read"].union(() if kinds.isdisjoint(_ELEMENTS["read"]) else ("value", "content"))
    for match in _ATTRIBUTE.finditer(source, *attributes):
        rank = match.lastindex or 1
        if match[1].lower() in names and rank > 1 and has_letters(match[rank]):
            yield match.span(rank)


def _is_translated(source: str, attributes: Span) -> bool | None:
    # Both attributes that say so have the word in them.
    if "translate" not in source[slice(*attributes)].lower():
        return None
    values = _stated(source, attributes)
    if values.get("translate") == "no" or "notranslate" in values.get("class", "").split():
        return False
    return True if values.get("translate") == "yes" else None


class _Page:
    """Tells apart tags, and the texts that people read."""

    def __init__(self, source: str) -> None:
        self._source = source
        # The elements that are open, and whether their texts are translated.
        self._open: list[tuple[str, bool]] = []
        self._open_names: Counter[str] = Counter()

    def marks(self) -> Iterator[Piece]:
        """All of the source, in order and without gaps; of a tag that bounds sentences a piece that says so.

        No reader sees a tag or a comment that the end cuts off.
        """
        for token in tokens(self._source, 0, _ELEMENTS["raw"], _REFERENCE):
            if token.kind == "raw":
                for line in _LINE.finditer(self._source, token.start, token.end):
                    if line[0].isspace():
                        yield self._mark(*line.span(), "bound")
                    else:
                        yield from map(self._text, _texts(self._source, *line.span(), _REFERENCE))
            elif token.kind in ("text", "reference"):
                yield self._text(token)
            elif token.kind == "close":
                mark = self._tag_mark(token, "close")
                if self._open_names[token.name]:
                    self._close(token.name)
                yield mark
            else:
                yield self._opened(token)

    def _text(self, token: Token) -> Piece:
        return replace(self._mark(token.start, token.end, "text"), decode=unescape)

    def _opened(self, token: Token) -> Piece:
        """The piece of a start tag, or of what has no content."""
        tag = token.name
        is_open = token.kind == "open" and tag not in _ELEMENTS["void"]
        if is_open and tag in _ELEMENTS["self_closing"] and self._open and self._open[-1][0] == tag:
            self._close(tag)
        is_read = token.is_translated
        if is_read is None:
            is_read = tag not in _ELEMENTS["untranslated"] and (not self._open or self._open[-1][1])
        if is_open:
            self._open.append((tag, is_read))
            self._open_names[tag] += 1
        mark = self._tag_mark(token, "open" if is_open else "empty")
        return replace(mark, values=tuple(self._values(token))) if is_read else mark

    def _tag_mark(self, token: Token, kind: Kind) -> Piece:
        is_within = not token.name or token.name in _ELEMENTS["within_sentences"]
        return self._mark(token.start, token.end, kind if is_within else "bound", token.name)

    def _mark(self, start: int, end: int, kind: Kind, tag: str = "") -> Piece:
        if kind != "bound" and self._open and not self._open[-1][1]:
            # What tells its depth is all that counts of a tag that is not translated.
            return Piece(start=start, end=end, kind="markup", name=kind if kind in _DEPTHS else "")
        return Piece(start=start, end=end, kind=kind, name=tag)

    def _values(self, token: Token) -> Iterator[Value]:
        """The texts that people read in a start tag."""
        for start, end in token.values:
            around = self._source[start - 1]
            encode = partial(_in_quotes, around if around in "\"'" else "")
            yield Value(start=start, end=end, decode=unescape, encode=encode)

    def _close(self, tag: str) -> None:
        while True:
            name, _ = self._open.pop()
            self._open_names[name] -= 1
            if name == tag:
                return
