"""Texts with markup, read as the text that is translated and the tags that go around it again.

Python's own parser of HTML takes whatever is there, reads XML's empty elements too, and changes nothing.
"""

import enum
import functools
import html
import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from itertools import accumulate
from typing import NamedTuple

from dragoman_files.hypertext import LANGUAGE, values_read
from dragoman_server.text.mapped import Edit, Mapped, Span, moved
from dragoman_server.text.marks import Kind, Mark, Opened
from dragoman_server.text.read.clean import clean

MAX_UNCLOSED = 16
"""So often a tag or comment that has no end counts as text, and what is behind it is read; then all is
text."""
_HUGE_NUMBER = re.compile(r"&#(?=[0-9]{1000})")
"""A reference by a number of so many digits is none of a character, and Python refuses to read it."""


_DECLARATIONS = re.compile(r"\A(\s*+(?:<\?[^>]*+>\s*+)?<!DOCTYPE[^\[<>]*+)\[[^\]]*+\]\s*+>", re.IGNORECASE)
"""The declarations that a text of XML begins with; to Python's parser the first one ends it."""

_OBJECT = "\ufffc"
"""Stands in the text for what is not translated and has a place in the sentence."""
_BOUNDARY = "\n"
"""Stands for what ends a sentence, as line ends do in a plain text."""
_LINE_ENDS = str.maketrans(dict.fromkeys("\n\r\v\f\t\x1c\x1d\x1e\x85\u2028\u2029", " "))
_SYNTAX = "&<>"
_NOTE = re.compile(r"[\[(]?\d{1,3}[\])]?|[-+−]\d{0,3}|\d{0,3}[-+−]")
_RAISED = str.maketrans("0123456789+-−([)]", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁽⁾⁾")
_LOWERED = str.maketrans("0123456789+-−([)]", "₀₁₂₃₄₅₆₇₈₉₊₋₋₍₍₎₎")
_FORMULA = re.compile(r"(?<![A-Za-z])(?:[A-Z][a-z]?)+\Z")
"""What a lowered number follows in a formula; `search` takes the end of its range for that of the text."""
_Attributes = Sequence[tuple[str, str | None]]


class Value(NamedTuple):
    """What stands in an attribute; spans count the caller's code points."""

    tag: Span
    span: Span
    is_language: bool


class _EventKind(enum.Enum):
    """The kinds of pieces that a text with markup consists of."""

    TEXT = enum.auto()
    REFERENCE = enum.auto()
    START = enum.auto()
    END = enum.auto()
    OTHER = enum.auto()
    """An empty element, a comment, a declaration or an instruction."""


class _Event(NamedTuple):
    kind: _EventKind
    start: int
    """Its first code point in the caller's text."""
    end: int
    """One past its last."""
    name: str = ""
    """A tag's name in small letters."""
    attributes: _Attributes = ()


def read_markup(text: str, untranslated: Collection[str] = ()) -> tuple[Mapped, list[Mark], Sequence[Value]]:
    """Reads a text of HTML, or of the inline elements of XLIFF. Any text is one.

    Returns the cleaned text; marks of its tags, of what is not translated and of references that stand for
    no letter; and what attributes have for people. `untranslated` are further names of elements, in small
    letters, that are not translated.
    """
    reader = _Reader(text, untranslated)
    edits = list(reader.edits())
    shown = Mapped.of(text).spelled(text.translate(_LINE_ENDS)).edited(edits)
    cleaned = shown.then(clean(shown.text))
    marks = [
        replace(mark, span=(cleaned.forth(mark.span[0]), cleaned.forth(mark.span[1])))
        for mark in reader.marks
    ]
    return cleaned, marks, reader.values


def start_tags(text: str) -> Iterator[Span]:
    """The ranges of a text's start tags, those of empty elements too."""
    for event in _parse(text):
        if event.attributes:
            yield event.start, event.end


class _Reader:
    def __init__(self, text: str, untranslated: Collection[str]) -> None:
        self._text = text
        self._untranslated = untranslated
        self.marks: list[Mark] = []
        """The marks, with spans of the caller's text."""
        self.values: list[Value] = []
        self._is_kept = False
        """Whether line ends are, as in a field to type in."""

    def edits(self) -> Iterator[Edit]:
        """What must be done to the text so that it has no tags; with it, all marks are found."""
        events = _parse(self._text)
        matched = _match_tags(events)
        closing = set(matched.values())
        index = 0
        while index < len(events):
            event, end = events[index], matched.get(index)
            span = event.start, event.end
            raw = self._text[event.start : event.end]
            if event.kind is _EventKind.REFERENCE:
                yield from self._reference(span, raw)
            elif end is not None and (raised := self._raised(event, events[index + 1 : end])):
                span = event.start, events[end].end
                self.marks.append(Mark(span=span, kind=Kind.RAISED))
                yield span, raised
                index = end
            elif self._stands_for_word(events, index, end) or self._is_untranslated(event, end):
                end = index if end is None else end
                yield self._untouched(events[index : end + 1])
                index = end
            elif event.kind is _EventKind.TEXT:
                if self._is_kept:
                    for line_end in re.finditer("[\r\n]+", raw):
                        yield moved(line_end.span(), event.start), _BOUNDARY
            else:
                is_block = event.name in _elements("blocks")
                if event.name == "textarea":
                    self._is_kept = event.kind is _EventKind.START
                if event.attributes:
                    self.values += _values(event.name, raw, event.start)
                if event.kind is _EventKind.START and end is not None and not is_block:
                    last = events[end]
                    closed = self._text[last.start : last.end]
                    inner = event.end, last.start
                    self.marks.append(Mark(span=inner, kind=Kind.ELEMENT, output=raw, closing=closed))
                elif not is_block and index not in closing:
                    self.marks.append(Mark(span=(event.start, event.start), kind=Kind.TAG, output=raw))
                yield span, _BOUNDARY if is_block else ""
            index += 1

    def _raised(self, event: _Event, content: Sequence[_Event]) -> str:
        """The number that is all that an element holds, as Unicode writes it raised or lowered; empty of any
        other element.

        Such an element may have any name where its number touches a letter before it.
        """
        is_named = event.name in ("sup", "sub")
        if not is_named and len(content) != 1:
            return ""
        shown = "".join(self._text[each.start : each.end] for each in content if each.kind is _EventKind.TEXT)
        if is_named:
            is_low = event.name == "sub"
        elif self._text[event.start - 1 : event.start].isalpha() and shown.isdigit():
            is_low = _FORMULA.search(self._text, max(0, event.start - 20), event.start) is not None
        else:
            return ""
        return shown.translate(_LOWERED if is_low else _RAISED) if _NOTE.fullmatch(shown) else ""

    def _stands_for_word(self, events: Sequence[_Event], index: int, end: int | None) -> bool:
        """Whether it is a placeholder that holds nothing and touches no word."""
        event, last = events[index], events[index if end is None else end]
        is_empty = end == index + 1 or event.kind is _EventKind.OTHER
        if not is_empty or event.name not in _elements("placeholders"):
            return False
        around = self._text[event.start - 1 : event.start] + self._text[last.end : last.end + 1]
        return not any(map(str.isalnum, around))

    def _is_untranslated(self, event: _Event, end: int | None) -> bool:
        if event.kind is _EventKind.OTHER:
            return event.name in self._untranslated
        if event.kind is not _EventKind.START or end is None:
            return False
        values = dict(event.attributes)
        return (
            event.name in self._untranslated
            or event.name in _elements("untranslated")
            or (values.get("translate") or "").lower() == "no"
            or "notranslate" in (values.get("class") or "").split()
        )

    def _reference(self, span: tuple[int, int], raw: str) -> Iterator[Edit]:
        shown = html.unescape(raw)
        if shown == raw:
            if raw.endswith(";"):
                # One of XML's own; any other is no reference after all.
                self.marks.append(Mark(span=span, kind=Kind.UNTRANSLATED))
            return
        shown = shown.translate(_LINE_ENDS)
        if shown.isspace():
            shown = " "
        if shown == " " or shown in _SYNTAX or unicodedata.category(shown[0])[0] in "SC":
            self.marks.append(Mark(span=span, kind=Kind.ENTITY))
        yield span, shown

    def _untouched(self, events: Sequence[_Event]) -> Edit:
        """An element that is not translated is a word within a sentence, or stands between sentences if it
        holds a block."""
        span = events[0].start, events[-1].end
        if any(event.kind is not _EventKind.TEXT and event.name in _elements("blocks") for event in events):
            return span, _BOUNDARY
        self.marks.append(Mark(span=span, kind=Kind.UNTRANSLATED))
        return span, _OBJECT


def _values(name: str, raw: str, start: int) -> list[Value]:
    """What is to be changed in a start tag of this name: texts for people, and its language."""
    tag = start, start + len(raw)
    spans = {found.span(2): True for found in LANGUAGE.finditer(raw)} if name == "html" else {}
    spans |= {
        span: False
        for span in values_read(name, raw, 1 + len(name), len(raw))
        if "<" not in raw[slice(*span)]
    }
    return [Value(tag, moved(span, start), spans[span]) for span in sorted(spans)]


@functools.cache
def _elements(kind: str) -> frozenset[str]:
    """The names that the table has of a kind."""
    listed = tomllib.loads(files("dragoman_server.text.read").joinpath("elements.toml").read_text("utf-8"))
    others = listed["untranslated_blocks"] if kind in ("blocks", "untranslated") else ""
    return frozenset(f"{listed[kind]} {others}".split())


def _parse(text: str) -> list[_Event]:
    """The events of a text with markup. They cover it, in order."""
    text = _HUGE_NUMBER.sub("##", text)
    text = _DECLARATIONS.sub(lambda found: f"{found[1]}{'-' * (len(found[0]) - len(found[1]) - 1)}>", text)
    raw: list[tuple[_EventKind, int, str, _Attributes]] = []
    start = 0
    for _ in range(MAX_UNCLOSED):
        parser = _Parser(text, start)
        parser.feed(text[start:])
        raw += parser.events
        # What is not closed, as a comment without an end, is left; to close the parser would have it look for
        # the end again at each one, which takes the square of the time.
        start = len(text) - len(parser.rawdata)
        if start == len(text):
            break
        if _is_cut_off(text, start):
            raw.append((_EventKind.OTHER, start, "", ()))
            break
        raw.append((_EventKind.TEXT, start, "", ()))
        start += 1
    else:
        raw.append((_EventKind.TEXT, start, "", ()))
    ends = [*(start for _, start, _, _ in raw[1:]), len(text)][: len(raw)]
    events = [
        _Event(kind, start, end, name, attributes)
        for (kind, start, name, attributes), end in zip(raw, ends, strict=True)
        if start < end
    ]
    if not events or events[0].start > 0:
        end = events[0].start if events else len(text)
        events[:0] = [_Event(_EventKind.TEXT, 0, end)] if end else []
    return events


def _is_cut_off(text: str, start: int) -> bool:
    """Whether a tag begins there that the end of the text cuts off: no browser shows any of it."""
    name = start + (2 if text.startswith("</", start) else 1)
    return text[name : name + 1].isalpha() and ">" not in text[start:]


def _match_tags(events: Sequence[_Event]) -> dict[int, int]:
    """The index of the end tag, by the index of each start tag that is closed. The pairs nest."""
    opened = Opened()
    matched: dict[int, int] = {}
    for index, event in enumerate(events):
        if event.kind is _EventKind.START:
            opened.append(event.name, index)
        elif event.kind is _EventKind.END and (places := opened.close(event.name)):
            matched[places[-1]] = index
    return matched


class _Parser(HTMLParser):
    def __init__(self, text: str, start: int) -> None:
        super().__init__(convert_charrefs=False)
        self.events: list[tuple[_EventKind, int, str, _Attributes]] = []
        lengths = [len(line) + 1 for line in text[start:].split("\n")]
        self._line_starts = list(accumulate(lengths, initial=start))

    def _note(self, kind: _EventKind, name: str = "", attributes: _Attributes = ()) -> None:
        line, offset = self.getpos()
        self.events.append((kind, self._line_starts[line - 1] + offset, name, attributes))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # One that has no end, as `br`, is left unmatched.
        self._note(_EventKind.START, tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(_EventKind.OTHER, tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self._note(_EventKind.END, tag)

    def handle_data(self, data: str) -> None:
        self._note(_EventKind.TEXT)

    def handle_entityref(self, name: str) -> None:
        self._note(_EventKind.REFERENCE)

    def handle_charref(self, name: str) -> None:
        self._note(_EventKind.REFERENCE)

    def handle_comment(self, data: str) -> None:
        self._note(_EventKind.OTHER)

    def handle_decl(self, decl: str) -> None:
        self._note(_EventKind.OTHER, "!doctype")

    def unknown_decl(self, data: str) -> None:
        self._note(_EventKind.OTHER, "!")

    def handle_pi(self, data: str) -> None:
        self._note(_EventKind.OTHER, "?")
