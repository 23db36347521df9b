"""A text with markup as a sequence of tags, text and references, each with its place.

Python's own parser of HTML takes whatever is there, reads XML's empty elements too, and changes nothing.
"""

import enum
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from itertools import accumulate

from dragoman_server.text.markup.tags import Attributes

MAX_UNCLOSED = 16
"""So often a tag or comment that has no end counts as text, and what is behind it is read; then all is
text."""
_HUGE_NUMBER = re.compile(r"&#(?=[0-9]{1000})")
"""A reference by a number of so many digits is none of a character, and Python refuses to read it."""


class EventKind(enum.Enum):
    """The kinds of pieces that a text with markup consists of."""

    TEXT = enum.auto()
    REFERENCE = enum.auto()
    START = enum.auto()
    END = enum.auto()
    OTHER = enum.auto()
    """An empty element, a comment, a declaration or an instruction."""


@dataclass(frozen=True)
class Event:
    """One event."""

    kind: EventKind
    start: int
    """Its first code point in the caller's text."""
    end: int
    """One past its last."""
    name: str = ""
    """A tag's name in small letters."""
    attributes: Attributes = ()


_RawEvent = tuple[EventKind, int, str, Attributes]


def parse(text: str) -> list[Event]:
    """The events of a text with markup. They cover it, in order."""
    text = _HUGE_NUMBER.sub("##", text)
    raw: list[_RawEvent] = []
    start = 0
    for _ in range(MAX_UNCLOSED):
        reader = _Reader(text, start)
        reader.feed(text[start:])
        raw += reader.events
        # What is not closed, as a comment without an end, is left; to close the parser would have it look for
        # the end again at each one, which takes the square of the time.
        start = len(text) - len(reader.rawdata)
        if start == len(text):
            break
        if _is_cut_off(text, start):
            raw.append((EventKind.OTHER, start, "", ()))
            break
        raw.append((EventKind.TEXT, start, "", ()))
        start += 1
    else:
        raw.append((EventKind.TEXT, start, "", ()))
    ends = [*(start for _, start, _, _ in raw[1:]), len(text)][: len(raw)]
    events = [
        Event(kind, start, end, name, attributes)
        for (kind, start, name, attributes), end in zip(raw, ends, strict=True)
        if start < end
    ]
    if not events or events[0].start > 0:
        end = events[0].start if events else len(text)
        events[:0] = [Event(EventKind.TEXT, 0, end)] if end else []
    return events


def _is_cut_off(text: str, start: int) -> bool:
    """Whether a tag begins there that the end of the text cuts off: no browser shows any of it."""
    name = start + (2 if text.startswith("</", start) else 1)
    return text[name : name + 1].isalpha() and ">" not in text[start:]


def match_tags(events: Sequence[Event]) -> dict[int, int]:
    """The index of the end tag, by the index of each start tag that is closed. The pairs nest."""
    open_tags: list[int] = []
    num_open: Counter[str] = Counter()
    matched: dict[int, int] = {}
    for index, event in enumerate(events):
        if event.kind is EventKind.START:
            open_tags.append(index)
            num_open[event.name] += 1
        elif event.kind is EventKind.END and num_open[event.name]:
            while True:
                last = open_tags.pop()
                name = events[last].name
                num_open[name] -= 1
                if name == event.name:
                    matched[last] = index
                    break
    return matched


class _Reader(HTMLParser):
    def __init__(self, text: str, start: int) -> None:
        super().__init__(convert_charrefs=False)
        self.events: list[_RawEvent] = []
        lengths = [len(line) + 1 for line in text[start:].split("\n")]
        self._line_starts = list(accumulate(lengths, initial=start))

    def _note(self, kind: EventKind, name: str = "", attributes: Attributes = ()) -> None:
        line, offset = self.getpos()
        self.events.append((kind, self._line_starts[line - 1] + offset, name, attributes))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # One that has no end, as `br`, is left unmatched.
        self._note(EventKind.START, tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(EventKind.OTHER, tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self._note(EventKind.END, tag)

    def handle_data(self, data: str) -> None:
        self._note(EventKind.TEXT)

    def handle_entityref(self, name: str) -> None:
        self._note(EventKind.REFERENCE)

    def handle_charref(self, name: str) -> None:
        self._note(EventKind.REFERENCE)

    def handle_comment(self, data: str) -> None:
        self._note(EventKind.OTHER)

    def handle_decl(self, decl: str) -> None:
        self._note(EventKind.OTHER, "!")

    def unknown_decl(self, data: str) -> None:
        self._note(EventKind.OTHER, "!")

    def handle_pi(self, data: str) -> None:
        self._note(EventKind.OTHER, "?")
