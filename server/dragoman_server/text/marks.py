"""Marks: all of a text that is kept, masked, inserted again or wrapped around what its words become.

Spans count code points of the cleaned text. Pure.
"""

import enum
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dragoman_server.text.mapped import Span
from dragoman_server.text.words import holds_letter

_NUMBER_BEFORE = re.compile(r"\d[ \u00a0\u202f]?\Z")


class How(enum.Enum):
    """How a mark comes through a translation."""

    MASK = "mask"
    """The model is shown a word in its place."""
    CHECK = "check"
    """The model translates it; where its answer lacks it, it is masked, too."""
    INSERT = "insert"
    """A sentence is complete without it: it is left out, and inserted into the answer."""
    WRAP = "wrap"
    """It stands around words, and is put around those that they become."""
    PAIR = "pair"
    """It stands on one side of words, and the model translates it with them; where its answer lacks it or its
    partner, it is put around what they become."""


class Kind(enum.Enum):
    """Why there is a mark; where two overlap, the kind that is listed first wins."""

    CHOICE = "choice"
    """A program chooses by an argument which of its texts is shown; see `messages`."""
    UNTRANSLATED = "untranslated"
    """Markup says that it is not translated, as `code` does."""
    RANGE = "range"
    """The caller gave its place."""
    NAMED = "named"
    """The caller gave the word, or a pattern of it."""
    CODE = "code"
    BREAK = "break"
    """It ends a line, though it is none's end: no sentence goes on across it."""
    OPENING = "opening"
    """A bracket or quotation mark that something begins with; its output is the translation's own."""
    CLOSING = "closing"
    """The one that it ends with."""
    PLACEHOLDER = "placeholder"
    QUANTITY = "quantity"
    """A placeholder that a number takes the place of."""
    URL = "url"
    EMAIL = "email"
    PATH = "path"
    HASHTAG = "hashtag"
    MENTION = "mention"
    EMOJI = "emoji"
    TERM = "term"
    """A glossary says what it is translated by."""
    REFERENCE = "reference"
    """A number with letters: of a product, an account, a room, or "CO₂" and "m²"."""
    ENTITY = "entity"
    """A character reference of markup that stands for no letter, and is in nothing else."""
    RAISED = "raised"
    """A number that markup raises or lowers, with its tags, such as a footnote's: part of no formula."""
    NUMBER = "number"
    NAME = "name"
    """A surname behind a title, or an acronym that the vocabulary does not know."""
    UNKNOWN = "unknown"
    """The model has no tokens for it, or it is of another script than the language."""
    TAG = "tag"
    """A comment, or the tag of an empty element: its span is empty."""
    ELEMENT = "element"
    """An inline element of markup: its span is that of its text."""


_RANKS = {kind: rank for rank, kind in enumerate(Kind)}
_HOW = {
    Kind.TERM: How.CHECK,
    Kind.NUMBER: How.CHECK,
    Kind.EMOJI: How.INSERT,
    Kind.ENTITY: How.INSERT,
    Kind.RAISED: How.INSERT,
    Kind.TAG: How.INSERT,
    Kind.ELEMENT: How.WRAP,
    Kind.OPENING: How.PAIR,
    Kind.CLOSING: How.PAIR,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """One of them. The translation has it exactly once."""

    span: Span
    kind: Kind
    output: str | None = None
    """The translation's text in its place; None keeps the caller's. Of an element the start tag, None where
    that stands before the range that is looked at."""
    closing: str | None = None
    """The end tag of an element; None where it stands behind the range."""

    @property
    def how(self) -> How:
        """How it comes through."""
        return _HOW.get(self.kind, How.MASK)

    @property
    def is_unchanged(self) -> bool:
        """Whether it is masked, and stays the caller's own text."""
        is_apart = self.kind in (Kind.BREAK, Kind.CHOICE)
        return self.how is How.MASK and self.output is None and not is_apart

    @property
    def is_inserted(self) -> bool:
        """Whether it is left out, and inserted into the answer."""
        return self.how is How.INSERT


class Value(NamedTuple):
    """What stands in an attribute of a tag; spans count the caller's code points."""

    tag: Span
    span: Span
    is_language: bool


def disjoint(candidates: Iterable[Mark]) -> tuple[Mark, ...]:
    """The marks that do not overlap, in the text's order. Of two that do, the kind decides, then the length,
    then the order."""
    first: dict[tuple[Kind, Span], Mark] = {}
    for mark in candidates:
        first.setdefault((mark.kind, mark.span), mark)
    if not first:
        return ()
    ranked = sorted(
        first.values(), key=lambda mark: (_RANKS[mark.kind], mark.span[0] - mark.span[1], mark.span[0])
    )
    offset = min(mark.span[0] for mark in ranked)
    taken = bytearray(max(mark.span[1] for mark in ranked) - offset)
    chosen: list[Mark] = []
    for mark in ranked:
        start, end = mark.span[0] - offset, mark.span[1] - offset
        if start < end and taken.find(1, start, end) < 0:
            taken[start:end] = b"\1" * (end - start)
            chosen.append(mark)
    return tuple(sorted(chosen, key=lambda mark: mark.span))


def chained(marks: Iterable[Mark], belong: Callable[[Mark, Mark], bool]) -> Iterator[list[Mark]]:
    """The marks, which are in order, in rows of those that each belong to the one before."""
    chain: list[Mark] = []
    for mark in marks:
        if chain and not belong(chain[-1], mark):
            yield chain
            chain = []
        chain.append(mark)
    if chain:
        yield chain


def within(marks: Sequence[Mark], span: Span) -> tuple[Mark, ...]:
    """The marks that begin in a span; `marks` are in order."""
    if not marks:
        return ()
    first = bisect_left(marks, span[0], key=lambda mark: mark.span[0])
    last = bisect_left(marks, span[1], key=lambda mark: mark.span[0])
    return tuple(marks[first:last])


def beginning_outside(others: Sequence[Mark], marks: Sequence[Mark]) -> Sequence[Mark]:
    """The marks that begin in none of the others; both are in order."""
    if not others or not marks:
        return marks
    remaining = deque(others)
    found = []
    for mark in marks:
        while remaining and remaining[0].span[1] <= mark.span[0]:
            remaining.popleft()
        if not remaining or mark.span[0] < remaining[0].span[0]:
            found.append(mark)
    return found


def outside(span: Span, others: Iterable[Span]) -> Iterator[Span]:
    """The ranges of a span that none of the others covers or cuts, and that are not empty; they are in
    order."""
    start, end = span
    for first, last in others:
        if start < first:
            yield start, first
        start = max(start, last)
    if start < end:
        yield start, end


def text_outside(text: str, span: Span, marks: Sequence[Mark]) -> str:
    """The parts of a span's text that are in none of the marks, which are in order."""
    return " ".join(
        text[start:end] for start, end in outside(span, (mark.span for mark in within(marks, span)))
    )


def is_text(text: str, span: Span, marks: Sequence[Mark]) -> bool:
    """Whether a span has a letter outside of the marks, or a number with the power of a unit, as "2,5 m²"."""
    if holds_letter(text_outside(text, span, marks)):
        return True
    return any(
        mark.kind is Kind.REFERENCE
        and text[mark.span[1] - 1] in "²³"
        and _NUMBER_BEFORE.search(text, max(span[0], mark.span[0] - 2), mark.span[0])
        for mark in within(marks, span)
    )


def blanked(text: str, marks: Sequence[Mark], sign: str) -> str:
    """The text with a sign in place of each character of the marks, of those that are inserted with a dot."""
    if not marks:
        return text
    signs = [sign] * len(text)
    for mark in marks:
        if mark.is_inserted:
            signs[slice(*mark.span)] = "." * (mark.span[1] - mark.span[0])
    for start, end in outside((0, len(text)), (mark.span for mark in marks)):
        signs[start:end] = text[start:end]
    return "".join(signs)


def trimmed(text: str, span: Span, marks: Iterable[Mark] = ()) -> Span | None:
    """A span without white space and inserted marks at its ends; None where nothing else is in it."""
    start, end = span
    starting = {mark.span[0]: mark.span[1] for mark in marks if mark.is_inserted}
    ending = {last: first for first, last in starting.items()}
    while start < end and (text[start].isspace() or start in starting):
        start = starting.get(start, start + 1)
    while start < end and (text[end - 1].isspace() or end in ending):
        end = ending.get(end, end - 1)
    return (start, end) if start < end else None


def cut_to(tags: Iterable[Mark], span: Span) -> tuple[Mark, ...]:
    """The tags strictly inside of a span: an element without the tag that stands outside or at an edge."""
    start, end = span
    found: dict[Span, Mark] = {}
    others = []
    for tag in tags:
        first, last = tag.span
        if tag.kind is Kind.TAG:
            if start < first < end:
                others.append(tag)
            continue
        opening = tag.output if start < first < end else None
        closing = tag.closing if start < last < end else None
        if opening is None and closing is None:
            continue
        overlap = max(start, first), min(end, last)
        outer = found.get(overlap)
        if outer is not None:
            # They stand around the same words, and so are as one.
            opening = None if opening is None else (outer.output or "") + opening
            closing = None if closing is None else closing + (outer.closing or "")
        found[overlap] = Mark(span=overlap, kind=Kind.ELEMENT, output=opening, closing=closing)
    return (*found.values(), *others)
