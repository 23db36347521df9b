"""HTML: the texts between tags, block by block. Tags, attributes and what no reader sees stay to the byte."""

import html
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from itertools import zip_longest
from typing import Literal

from dragoman.jobs.formats.document import Segment
from dragoman.jobs.formats.spacing import collapse
from dragoman.jobs.formats.tags.markup import Kind, Piece, runs
from dragoman.jobs.formats.tags.tagged import Tagged, encode_with

_WITHIN_SENTENCES = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark nobr picture q rp"
    " rt ruby s samp small source span strike strong sub sup time tt u var wbr"
)
_INLINE = frozenset(_WITHIN_SENTENCES.split())
"""Elements within a sentence; all others bound one."""
VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")
)
"""Elements that have a start tag alone."""
_NO_PROSE = "code kbd math noembed noframes pre samp script style svg template textarea tt var xmp"
_UNTRANSLATED = frozenset(_NO_PROSE.split())
_SELF_CLOSING = frozenset(("dd", "dt", "li", "option", "p", "rp", "rt", "td", "th", "tr"))
"""Elements that end where the next one of their kind begins."""
_REFERENCE = re.compile(r"(&(?:#\w+|\w+);)")
_DEPTHS = {"open": 1, "close": -1}
"""By how much a tag goes deeper."""
_BEGIN_OF_TAG = re.compile("<[A-Za-z/!?]")
"""All that begins with "<" and is no text (HTML's standard, 13.2.5.6)."""
_DECLARED = re.compile(rb"""<meta\s[^>]*charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)


def declared_encoding(head: bytes) -> str | None:
    """The encoding that a page declares. UTF-16 does not count: no page in it can be read so far."""
    match = _DECLARED.search(head)
    name = match[1].decode().lower() if match is not None else None
    return None if name is None or name.startswith("utf-16") else name


def segments(source: str) -> Iterator[Segment]:
    """The texts of a page or of a part of one."""
    for block in _blocks(source):
        for run in runs(source, block):
            tagged = Tagged(source, run, _encode)
            yield Segment(
                start=run.start,
                end=run.end,
                text=collapse(tagged.html),
                shown=run.text,
                write=tagged.write,
            )


_encode = encode_with(partial(html.escape, quote=False))


def _blocks(source: str) -> Iterator[list[Piece]]:
    """The pieces between marks that bound sentences."""
    marks = _Parser(source).marks
    block: list[Piece] = []
    position = 0
    for mark, following in zip_longest(marks, marks[1:]):
        if mark.start > position:
            # What the parser made nothing of.
            block.append(Piece(start=position, end=mark.start, kind="markup"))
        position = mark.end or (following.start if following is not None else len(source))
        if mark.kind == "bound":
            yield list(_joined(block))
            block = []
        elif mark.kind == "text":
            block += _text_pieces(source, mark.start, position)
        else:
            block.append(Piece(start=mark.start, end=position, kind=mark.kind, name=mark.name))
    yield list(_joined(block))


def _text_pieces(source: str, start: int, end: int) -> Iterator[Piece]:
    """A text, in which each reference is a piece of its own."""
    for part in _REFERENCE.split(source[start:end]):
        if part:
            yield Piece(start=start, end=start + len(part), kind="text", decode=html.unescape)
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


@dataclass(frozen=True, kw_only=True)
class _Mark:
    """Something in the source."""

    start: int
    end: int | None
    """None where it ends with the next one's beginning."""
    kind: Literal["bound"] | Kind
    """Whether it bounds sentences, or its role within one."""
    name: str = ""
    """The tag's name."""


class _Parser(HTMLParser):
    """Notes where everything begins, and which text people read."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=False)
        self.marks: list[_Mark] = []
        self._line_starts = [0, *(match.end() for match in re.finditer("\n", source))]
        self._open: list[tuple[str, bool]] = []
        self._open_names: Counter[str] = Counter()
        # References are decoded by whoever reads a text; here they would only be tripped over.
        self.feed(source.replace("&", "_"))
        # Nor is it closed: versions differ in what they make of a tag or comment that the end cuts off.
        if self.rawdata:
            self._unfinished(len(source) - len(self.rawdata))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element is open until its end tag comes, or that of one around it."""
        if tag in VOID:
            self._mark(tag, "empty")
            return
        if tag in _SELF_CLOSING and self._open and self._open[-1][0] == tag:
            self._close(tag)
        self._open.append((tag, self._is_translated(tag, dict(attrs))))
        self._open_names[tag] += 1
        self._mark(tag, "open")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element that ends where it begins."""
        self._mark(tag, "empty")

    def handle_endtag(self, tag: str) -> None:
        """An end tag; without a start tag it closes nothing."""
        self._mark(tag, "close")
        if self._open_names[tag]:
            self._close(tag)

    def handle_data(self, data: str) -> None:
        """Text, and what is within `script` and the like."""
        start = self._position()
        self._note(start, start + len(data), "text")

    def handle_comment(self, data: str) -> None:
        """No text for readers."""
        self._mark(None, "empty")

    def handle_decl(self, decl: str) -> None:
        """Notes a declaration, such as `<!DOCTYPE html>`."""
        self._mark("html", "empty")

    def handle_pi(self, data: str) -> None:
        """Notes an instruction, such as `<?xml version="1.0"?>`."""
        self._mark(None, "empty")

    def unknown_decl(self, data: str) -> None:
        """Notes a marked section, such as `<![CDATA[x]]>`."""
        self._mark(None, "empty")

    def _unfinished(self, start: int) -> None:
        """Notes what the parser waits to see the end of. No reader sees a tag or comment that is cut off."""
        is_cut_off = _BEGIN_OF_TAG.match(self.rawdata) is not None
        self._note(start, None, "empty" if is_cut_off else "text")

    def _mark(self, tag: str | None, kind: Kind) -> None:
        is_inline = tag is None or tag in _INLINE
        self._note(self._position(), None, kind if is_inline else "bound", tag or "")

    def _note(self, start: int, end: int | None, kind: Literal["bound"] | Kind, tag: str = "") -> None:
        if kind != "bound" and self._open and not self._open[-1][1]:
            # What tells its depth is all that counts of a tag that is not translated.
            kind, tag = "markup", kind if kind in _DEPTHS else ""
        self.marks.append(_Mark(start=start, end=end, kind=kind, name=tag))

    def _is_translated(self, tag: str, attributes: dict[str, str | None]) -> bool:
        wish = (attributes.get("translate") or "").lower()
        if wish in ("yes", "no"):
            return wish == "yes"
        if "notranslate" in (attributes.get("class") or "").split() or tag in _UNTRANSLATED:
            return False
        return not self._open or self._open[-1][1]

    def _close(self, tag: str) -> None:
        while True:
            name, _ = self._open.pop()
            self._open_names[name] -= 1
            if name == tag:
                return

    def _position(self) -> int:
        line, column = self.getpos()
        return self._line_starts[line - 1] + column
