"""A text with markup as the text that is translated, and the tags that go around it again."""

import html
import unicodedata
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dragoman_server.text.cleaning import CleanedText, clean
from dragoman_server.text.markup.element import Element, Insertion
from dragoman_server.text.markup.events import Event, EventKind, match_tags, parse
from dragoman_server.text.markup.tags import is_block, is_untouched
from dragoman_server.text.protection.protected import Protected, SpanKind

_OBJECT = "\ufffc"
"""Stands in the text for what is not translated and has a place in the sentence."""
_BOUNDARY = "\n"
"""Stands for what ends a sentence, as line ends do in a plain text."""
_LINE_ENDS = str.maketrans(dict.fromkeys("\n\r\v\f\t\x1c\x1d\x1e\x85\u2028\u2029", " "))
_SYNTAX = "&<>"


@dataclass(frozen=True, kw_only=True)
class Markup:
    """The text of a text with markup, and the elements that were taken out of it."""

    cleaned: CleanedText
    """The text without tags; its way back leads to the text with them."""
    protected: tuple[Protected, ...]
    """The spans that are not translated, and references that stand for no letter."""
    elements: tuple[Element, ...]
    insertions: tuple[Insertion, ...]


def read_markup(text: str, untranslated: Collection[str] = ()) -> Markup:
    """Reads a text of HTML, or of the inline elements of XLIFF. Any text is one.

    `untranslated` are names of elements, in small letters, beside those that are never translated.
    """
    reader = _Reader(text, untranslated)
    reader.read()
    return reader.finish()


class _Reader:
    """Collects places of the caller's text, which become those of the cleaned one in the end."""

    def __init__(self, text: str, untranslated: Collection[str]) -> None:
        self._text = text
        self._untranslated = untranslated
        self._shown: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._protected: list[tuple[int, int, SpanKind]] = []
        self._elements: list[tuple[int, int, str, str]] = []
        self._insertions: list[tuple[int, str]] = []

    def read(self) -> None:
        events = parse(self._text)
        matched = match_tags(events)
        closing = {end: start for start, end in matched.items()}
        index = 0
        while index < len(events):
            event = events[index]
            end = matched.get(index)
            if event.kind is EventKind.TEXT:
                self._show_text(event)
            elif event.kind is EventKind.REFERENCE:
                self._show_reference(event)
            elif (
                event.kind is EventKind.START
                and end is not None
                and (event.name in self._untranslated or is_untouched(event.name, event.attributes))
            ):
                self._skip(events[index : end + 1])
                index = end
            elif event.kind is EventKind.OTHER and event.name in self._untranslated:
                self._skip([event])
            elif is_block(event.name):
                self._show(_BOUNDARY, event.start, event.end)
            elif event.kind is EventKind.START and end is not None:
                last = events[end]
                self._elements.append((event.end, last.start, self._raw(event), self._raw(last)))
            elif index not in closing:
                self._insertions.append((event.start, self._raw(event)))
            index += 1

    def finish(self) -> Markup:
        shown = clean("".join(self._shown))
        starts = [self._starts[index] for index in shown.starts]
        ends = [self._ends[index - 1] for index in shown.ends]
        cleaned = CleanedText(
            caller_text=self._text,
            text=shown.text,
            tokenizer_text=shown.tokenizer_text,
            starts=starts,
            ends=ends,
        )

        def place_of(position: int) -> int:
            return bisect_left(starts, position)

        return Markup(
            cleaned=cleaned,
            protected=tuple(
                Protected(span=(place_of(start), place_of(end)), kind=kind)
                for start, end, kind in self._protected
            ),
            elements=tuple(
                Element(start=place_of(start), end=place_of(end), opening=opening, closing=closing)
                for start, end, opening, closing in self._elements
            ),
            insertions=tuple(
                Insertion(position=place_of(position), text=text) for position, text in self._insertions
            ),
        )

    def _raw(self, event: Event) -> str:
        return self._text[event.start : event.end]

    def _show(self, shown: str, start: int, end: int) -> None:
        """All of `shown` stands for one range of the caller's text."""
        self._shown.append(shown)
        self._starts += [start] * len(shown)
        self._ends += [end] * len(shown)

    def _show_text(self, event: Event) -> None:
        self._shown.append(self._raw(event).translate(_LINE_ENDS))
        self._starts += range(event.start, event.end)
        self._ends += range(event.start + 1, event.end + 1)

    def _show_reference(self, event: Event) -> None:
        raw = self._raw(event)
        shown = html.unescape(raw)
        if shown == raw:
            # No reference after all.
            self._show_text(event)
            return
        shown = shown.translate(_LINE_ENDS)
        if shown.isspace():
            shown = " "
        if shown == " " or shown in _SYNTAX or unicodedata.category(shown[0])[0] in "SC":
            self._protected.append((event.start, event.end, SpanKind.ENTITY))
        self._show(shown, event.start, event.end)

    def _skip(self, events: Sequence[Event]) -> None:
        """Protects an element that is not translated. It is a word within a sentence, or stands between
        sentences if it holds a block."""
        start, end = events[0].start, events[-1].end
        if any(event.kind is not EventKind.TEXT and is_block(event.name) for event in events):
            self._show(_BOUNDARY, start, end)
        else:
            self._show(_OBJECT, start, end)
            self._protected.append((start, end, SpanKind.UNTRANSLATED))
