"""Texts read: cleaned, and of markup the text that is translated and the tags that go around it again.

The reader of HTML is that of files; it takes whatever is there, and XML's empty elements too.
"""

import html
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from dragoman_bundle import Bundle

from dragoman_files.hypertext import LANGUAGE, Token, tokens
from dragoman_files.texts import ELEMENTS
from dragoman_server.text.brackets import Nesting
from dragoman_server.text.mapped import Edit, Mapped, Span, moved
from dragoman_server.text.marks import Kind, Mark, Value
from dragoman_server.text.options import TextFormat, TranslationOptions
from dragoman_server.text.passage import Passage
from dragoman_server.text.read.clean import clean, for_tokenizer
from dragoman_server.wanted import Wanted

MAX_UNCLOSED = 16
"""So often a tag or comment that has no end counts as text, and what is behind it is read; then all is
text."""
_BLOCKS = ELEMENTS["html"]["blocks"] | ELEMENTS["xliff"]["blocks"]
_UNTRANSLATED = ELEMENTS["html"]["untranslated"] | ELEMENTS["xliff"]["untranslated"]
_RAW = ("script", "style")
"""Elements in which there are no tags."""
_REFERENCE = re.compile(r"&(?:#(?:[0-9]{1,999}+|[xX][0-9A-Fa-f]++)(?![0-9A-Fa-f])|[A-Za-z][-.0-9A-Za-z]*+);?")
"""A reference. One by a number of more digits is none of a character, and Python refuses to read it."""
_DECLARATIONS = re.compile(r"\A(\s*+(?:<\?[^>]*+>\s*+)?<!DOCTYPE[^\[<>]*+)\[[^\]]*+\]\s*+>", re.IGNORECASE)
"""The declarations that a text of XML begins with; to a reader of HTML the first one ends it."""

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


def read(text: str, bundle: Bundle, options: TranslationOptions, wanted: Wanted) -> Passage:
    """A text that is cleaned, and of which the markup is read."""
    marks: list[Mark] = []
    values: Sequence[Value] = ()
    if options.text_format is TextFormat.HTML:
        source, marks, values = read_markup(text, options.protection.untranslated_elements)
    else:
        source = clean(text)
    return Passage(
        bundle=bundle,
        options=options,
        wanted=wanted,
        source=source,
        values=values,
        tokenizer_text=for_tokenizer(source.text),
        marks=tuple(mark for mark in marks if mark.kind not in (Kind.ELEMENT, Kind.TAG)),
        tags=tuple(mark for kind in (Kind.ELEMENT, Kind.TAG) for mark in marks if mark.kind is kind),
    )


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
        if event.name and event.kind in ("open", "empty"):
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
            if event.kind == "reference":
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
            elif event.kind == "text":
                if self._is_kept:
                    for line_end in re.finditer("[\r\n]+", raw):
                        yield moved(line_end.span(), event.start), _BOUNDARY
            else:
                is_block = event.name in _BLOCKS
                if event.name == "textarea":
                    self._is_kept = event.kind == "open"
                self.values += _values(self._text, event)
                if event.kind == "open" and end is not None and not is_block:
                    last = events[end]
                    closed = self._text[last.start : last.end]
                    inner = event.end, last.start
                    self.marks.append(Mark(span=inner, kind=Kind.ELEMENT, output=raw, closing=closed))
                elif not is_block and index not in closing:
                    self.marks.append(Mark(span=(event.start, event.start), kind=Kind.TAG, output=raw))
                yield span, _BOUNDARY if is_block else ""
            index += 1

    def _raised(self, event: Token, content: Sequence[Token]) -> str:
        """The number that is all that an element holds, as Unicode writes it raised or lowered; empty of any
        other element.

        Such an element may have any name where its number touches a letter before it.
        """
        is_named = event.name in ("sup", "sub")
        if not is_named and len(content) != 1:
            return ""
        shown = "".join(self._text[each.start : each.end] for each in content if each.kind == "text")
        if is_named:
            is_low = event.name == "sub"
        elif self._text[event.start - 1 : event.start].isalpha() and shown.isdigit():
            is_low = _FORMULA.search(self._text, max(0, event.start - 20), event.start) is not None
        else:
            return ""
        return shown.translate(_LOWERED if is_low else _RAISED) if _NOTE.fullmatch(shown) else ""

    def _stands_for_word(self, events: Sequence[Token], index: int, end: int | None) -> bool:
        """Whether it is a placeholder that holds nothing and touches no word."""
        event, last = events[index], events[index if end is None else end]
        is_empty = end == index + 1 or event.kind == "empty"
        if not is_empty or event.name not in ELEMENTS["xliff"]["placeholders"]:
            return False
        around = self._text[event.start - 1 : event.start] + self._text[last.end : last.end + 1]
        return not any(map(str.isalnum, around))

    def _is_untranslated(self, event: Token, end: int | None) -> bool:
        if event.kind == "empty":
            return event.name in self._untranslated
        if event.kind != "open" or end is None:
            return False
        is_named = event.name in _UNTRANSLATED and not event.is_translated
        return is_named or event.is_translated is False or event.name in self._untranslated

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

    def _untouched(self, events: Sequence[Token]) -> Edit:
        """An element that is not translated is a word within a sentence, or stands between sentences if it
        holds a block."""
        span = events[0].start, events[-1].end
        if any(event.kind != "text" and event.name in _BLOCKS for event in events):
            return span, _BOUNDARY
        self.marks.append(Mark(span=span, kind=Kind.UNTRANSLATED))
        return span, _OBJECT


def _values(text: str, event: Token) -> Iterator[Value]:
    """What is to be changed in a start tag: texts for people, and its language."""
    tag = event.start, event.end
    spans = {}
    if event.name == "html":
        spans = {found.span(2): True for found in LANGUAGE.finditer(text, *tag)}
    spans |= dict.fromkeys(event.values, False)
    for span in sorted(spans):
        if spans[span] or "<" not in text[slice(*span)]:
            yield Value(tag, span, spans[span])


def _parse(text: str) -> list[Token]:
    """The events of a text with markup. They cover it, in order."""
    text = _DECLARATIONS.sub(lambda found: f"{found[1]}{'-' * (len(found[0]) - len(found[1]) - 1)}>", text)
    events: list[Token] = []
    position = num_unclosed = 0
    while position < len(text):
        for token in tokens(text, position, _RAW, _REFERENCE):
            if token.kind == "raw" or (token.kind == "unclosed" and num_unclosed == MAX_UNCLOSED):
                token = token._replace(kind="text")
            elif token.kind == "unclosed" and _is_cut_off(text, token.start):
                token = token._replace(kind="empty")
            elif token.kind == "unclosed":
                token = token._replace(kind="text", end=token.start + 1)
                num_unclosed += 1
            events.append(token)
            position = token.end
    return events


def _is_cut_off(text: str, start: int) -> bool:
    """Whether a tag begins there that the end of the text cuts off: no browser shows any of it."""
    name = start + (2 if text.startswith("</", start) else 1)
    return text[name : name + 1].isalpha() and ">" not in text[start:]


def _match_tags(events: Sequence[Token]) -> dict[int, int]:
    """The index of the end tag, by the index of each start tag that is closed. The pairs nest."""
    opened = Nesting()
    matched: dict[int, int] = {}
    for index, event in enumerate(events):
        if event.kind == "open":
            opened.append(event.name, index)
        elif event.kind == "close" and (places := opened.close(event.name)):
            matched[places[-1]] = index
    return matched
