"""A span of a text that the model does not translate, and how spans that overlap are sorted out.

Spans count code points of the cleaned text.
"""

import enum
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dragoman_server.text.cleaning import Span


class SpanKind(enum.Enum):
    """Why a span is protected; where two overlap, the one that is listed first wins."""

    UNTRANSLATED = "untranslated"
    """Markup says that it is not translated, as `code` does."""
    RANGE = "range"
    """The caller gave its place."""
    NAMED = "named"
    """The caller gave the word, or a pattern of it."""
    CODE = "code"
    PLACEHOLDER = "placeholder"
    URL = "url"
    EMAIL = "email"
    PATH = "path"
    HASHTAG = "hashtag"
    MENTION = "mention"
    EMOJI = "emoji"
    ENTITY = "entity"
    """A character reference of markup that stands for no letter."""
    TERM = "term"
    """A glossary says what it is translated by."""
    REFERENCE = "reference"
    """A number with letters: of a product, an account, a room, or "CO₂" and "m²"."""
    NUMBER = "number"
    UNKNOWN = "unknown"
    """The model has no tokens for it, or it is of another script than the language."""


_PRECEDENCE = {kind: rank for rank, kind in enumerate(SpanKind)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Protected:
    """A span that the answer has exactly once."""

    span: Span
    kind: SpanKind
    output: str | None = None
    """The answer's text in its place; None keeps the caller's."""

    @property
    def floats(self) -> bool:
        """Whether a sentence is complete without it, so that it is left out and set in afterwards."""
        return self.kind is SpanKind.EMOJI or self.kind is SpanKind.ENTITY


def disjoint(candidates: Iterable[Protected]) -> tuple[Protected, ...]:
    """The spans that do not overlap, in the text's order. Of two that do, the kind decides, then the
    length, then the order."""
    first: dict[tuple[SpanKind, Span], Protected] = {}
    for item in candidates:
        first.setdefault((item.kind, item.span), item)
    if not first:
        return ()
    ranked = sorted(
        first.values(),
        key=lambda item: (_PRECEDENCE[item.kind], item.span[0] - item.span[1], item.span[0]),
    )
    offset = min(item.span[0] for item in ranked)
    taken = bytearray(max(item.span[1] for item in ranked) - offset)
    chosen: list[Protected] = []
    for item in ranked:
        start, end = item.span[0] - offset, item.span[1] - offset
        if start < end and taken.find(1, start, end) < 0:
            taken[start:end] = b"\1" * (end - start)
            chosen.append(item)
    return tuple(sorted(chosen, key=lambda item: item.span))


def within(items: Sequence[Protected], span: Span) -> tuple[Protected, ...]:
    """The spans that begin in a range; `items` are in order."""
    first = bisect_left(items, span[0], key=lambda item: item.span[0])
    last = bisect_left(items, span[1], key=lambda item: item.span[0])
    return tuple(items[first:last])
