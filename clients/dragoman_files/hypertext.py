"""HTML: the texts between tags, block by block. Tags, attributes and what no reader sees stay to the byte."""

import html
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from dragoman_files.document import Segment
from dragoman_files.format import ITEM_BYTES, Reading
from dragoman_files.tags import Kind, Piece, Value, block_segments, encode_with
from dragoman_files.texts import ELEMENTS, has_letters, primary_language, unescape

_ELEMENTS = ELEMENTS["html"]
_REFERENCE = re.compile(r"(&(?:#\w+|\w+);)")
_DEPTHS = {"open": 1, "close": -1}
"""By how much a tag goes deeper."""
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
_RAW_TEXT = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in ("script", "style", "textarea")
}
"""Elements whose content has no tags, and what ends it."""
_MAY_BE_READ = re.compile("|".join(("value", "content", *_ELEMENTS["read"])), re.IGNORECASE)
_ROOT = re.compile(r"<html\b[^<>]*>", re.IGNORECASE)
LANGUAGE = re.compile(r"""(\s(?:xml:)?lang\s*=\s*["']?)([\w-]+)""", re.IGNORECASE)
_DECLARED = re.compile(rb"""<meta\s[^>]*charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)


def declared_encoding(head: bytes) -> str | None:
    """The encoding that a page declares. UTF-16 does not count: no page in it can be read so far."""
    match = _DECLARED.search(head)
    name = match[1].decode().lower() if match is not None else None
    return None if name is None or name.startswith("utf-16") else name


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
        elif mark.kind == "text":
            block += _text_pieces(source, mark.start, mark.end)
        else:
            block.append(mark)
    yield list(_joined(block))


def _text_pieces(source: str, start: int, end: int) -> Iterator[Piece]:
    """A text, in which each reference is a piece of its own."""
    for part in _REFERENCE.split(source[start:end]):
        if part:
            yield Piece(start=start, end=start + len(part), kind="text", decode=unescape)
        start += len(part)


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


def values_read(tag: str, source: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the texts that people read or hear stand in a tag's attributes."""
    if start < 0 or not _MAY_BE_READ.search(source, start, end):
        return
    found = list(_ATTRIBUTE.finditer(source, start, end))
    stated = {match[1].lower(): (match[2] or match[3] or match[4] or "").lower() for match in found}
    kinds = {f"{tag}.{stated.get(name)}" for name in ("type", "name", "property")}
    is_known = not kinds.isdisjoint(_ELEMENTS["read"])
    for match in found:
        name, rank = match[1].lower(), match.lastindex or 1
        is_read = name in _ELEMENTS["read"] or (is_known and name in ("value", "content"))
        if is_read and rank > 1 and has_letters(match[rank]):
            yield match.span(rank)


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
        source, position = self._source, 0
        while (begin := _BEGIN_OF_TOKEN.search(source, position)) is not None:
            start = begin.start()
            if start > position:
                yield self._mark(position, start, "text")
            token = _TOKEN.match(source, start)
            if token is None:
                yield self._mark(start, len(source), "empty")
                return
            position = token.end()
            tag = (token["start"] or token["end"] or "").lower()
            kind: Kind = "empty"
            if token["end"]:
                kind = "close"
                mark = self._tag_mark(start, position, kind, tag)
                if self._open_names[tag]:
                    self._close(tag)
                yield mark
                continue
            if token["start"] and not token["empty"] and tag not in _ELEMENTS["void"]:
                kind = "open"
                if tag in _ELEMENTS["self_closing"] and self._open and self._open[-1][0] == tag:
                    self._close(tag)
                self._open.append((tag, self._is_translated(tag, token["attributes"])))
                self._open_names[tag] += 1
            mark = self._tag_mark(start, position, kind, "html" if token["declaration"] else tag)
            is_read = (
                self._open[-1][1] if kind == "open" else self._is_translated(tag, token["attributes"] or "")
            )
            yield replace(mark, values=tuple(self._values(tag, token))) if is_read else mark
            if kind == "open" and tag in _RAW_TEXT:
                end = _RAW_TEXT[tag].search(source, position)
                stop = len(source) if end is None else end.start()
                for line in _LINE.finditer(source, position, stop):
                    yield self._mark(*line.span(), "bound" if line[0].isspace() else "text")
                position = stop
        if position < len(source):
            yield self._mark(position, len(source), "text")

    def _tag_mark(self, start: int, end: int, kind: Kind, tag: str) -> Piece:
        return self._mark(
            start, end, kind if not tag or tag in _ELEMENTS["within_sentences"] else "bound", tag, kind
        )

    def _mark(self, start: int, end: int, kind: Kind, tag: str = "", depth: str = "") -> Piece:
        if kind != "bound" and self._open and not self._open[-1][1]:
            # What tells its depth is all that counts of a tag that is not translated.
            return Piece(start=start, end=end, kind="markup", name=depth if depth in _DEPTHS else "")
        return Piece(start=start, end=end, kind=kind, name=tag)

    def _is_translated(self, tag: str, attributes: str) -> bool:
        # Both attributes that say so have the word in them.
        if "translate" in attributes.lower():
            values: dict[str, str] = {
                name.lower(): (quoted or single or bare).lower()
                for name, quoted, single, bare in _ATTRIBUTE.findall(attributes)
                if name.lower() in ("translate", "class")
            }
            if (wish := values.get("translate")) in ("yes", "no"):
                return wish == "yes"
            if "notranslate" in values.get("class", "").split():
                return False
        return tag not in _ELEMENTS["untranslated"] and (not self._open or self._open[-1][1])

    def _values(self, tag: str, token: re.Match[str]) -> Iterator[Value]:
        """The texts that people read in a start tag."""
        for start, end in values_read(tag, self._source, token.start("attributes"), token.end("attributes")):
            around = self._source[start - 1]
            encode = partial(_in_quotes, around if around in "\"'" else "")
            yield Value(start=start, end=end, decode=unescape, encode=encode)

    def _close(self, tag: str) -> None:
        while True:
            name, _ = self._open.pop()
            self._open_names[name] -= 1
            if name == tag:
                return
