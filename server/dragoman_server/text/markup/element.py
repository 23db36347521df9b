"""Inline elements as ranges of the text that they stand around."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_server.text.cleaning import Span


@dataclass(frozen=True, kw_only=True)
class Element:
    """An inline element that begins, ends or both within a run of text; elements nest."""

    start: int
    """First code point of the text within it."""
    end: int
    """One past the last."""
    opening: str | None
    """The start tag as the caller wrote it; None where the element began before the run."""
    closing: str | None
    """The end tag; None where the element ends behind the run."""


@dataclass(frozen=True, kw_only=True)
class Insertion:
    """A thing at a position of a text that is no part of the text: the tag of an empty element, a comment."""

    position: int
    text: str


def elements_within(elements: Sequence[Element], span: Span) -> list[Element]:
    """The elements with a tag strictly inside of a span, cut to it.

    A tag at the edge of the span stands outside, and so it is left out here.
    """
    start, end = span
    found: dict[tuple[int, int], Element] = {}
    for element in elements:
        opening = element.opening if start < element.start < end else None
        closing = element.closing if start < element.end < end else None
        if opening is None and closing is None:
            continue
        overlap = max(start, element.start), min(end, element.end)
        outer = found.get(overlap)
        if outer is not None:
            # They stand around the same words, and so are as one.
            opening = None if opening is None else (outer.opening or "") + opening
            closing = None if closing is None else closing + (outer.closing or "")
        found[overlap] = Element(start=overlap[0], end=overlap[1], opening=opening, closing=closing)
    return list(found.values())
