"""The length policies: a unit with more source tokens than its model takes is split, rejected or truncated.

Owns the length policies. Must not know requests or what translates the units.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from dragoman_server.text.mapped import Mapped, Span
from dragoman_server.text.marks import trimmed
from dragoman_server.text.options import LengthPolicy
from dragoman_server.text.read.clean import for_tokenizer
from dragoman_server.text.words import holds_letter

_SPACES = re.compile(r"\s+")
_CLAUSE_END = re.compile(r"[,;:.!?…)\]–—][\"'”’»]*\s+|\s[-–—]\s+|[、。，；：！？]\s*")
_ZERO_WIDTH_JOINER = "\u200d"
_SKIN_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"


class UnitTooLongError(ValueError):
    """A unit has more source tokens than the model takes, and the caller asked for it to be rejected."""

    def __init__(self, *, span: Span, num_tokens: int, max_tokens: int) -> None:
        self.span, self.num_tokens, self.max_tokens = span, num_tokens, max_tokens
        super().__init__(
            f"the sentence at characters {span[0]} to {span[1]} has {num_tokens} tokens, its end included, "
            f"and the model takes {max_tokens}; shorten it, or ask for it to be split or truncated"
        )

    def within(self, part: Mapped) -> "UnitTooLongError":
        """The same error, of a text that the part with the unit was made of."""
        span = part.back(self.span)
        return UnitTooLongError(span=span, num_tokens=self.num_tokens, max_tokens=self.max_tokens)


class TextTooLongError(ValueError):
    """A text has more source tokens than one may cost."""

    def __init__(self, *, num_tokens: int, max_tokens: int) -> None:
        super().__init__(
            f"has {num_tokens} tokens, and a text takes {max_tokens}; cut it up, "
            "or start the server with larger --max-text-tokens"
        )


class SourceTokenizer(Protocol):
    """The part of a tokenizer that the policies need."""

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of many texts, without end of sentence."""
        ...


@dataclass(frozen=True, kw_only=True)
class FittedUnit:
    """A part of a text that the model takes at once."""

    span: Span
    """Its place in the cleaned text."""
    ids: tuple[int, ...]
    """Its source tokens, without end of sentence; empty where the tokenizer sees nothing in it."""
    is_truncated: bool = False
    """Whether it had more tokens."""


def fit(
    source: Mapped,
    spans: Sequence[Span],
    *,
    tokenizer: SourceTokenizer,
    max_tokens: int,
    num_ends: int = 1,
    policy: LengthPolicy,
    render: Callable[[Span], str] | None = None,
    whole: Sequence[Span] = (),
) -> list[FittedUnit]:
    """Tokenizes the units at `spans` so that each, its end of sentence included, has at most `max_tokens`.

    `num_ends` is 0 for a model whose sentences have no end in their source. `render` says what the model is
    shown for a span, if that is not the text itself. Nothing is cut within the ranges that are to stay
    `whole`, which are in order. Raises UnitTooLongError under LengthPolicy.REJECT.
    """
    text = for_tokenizer(source.text)
    if render is None:
        render = lambda span: text[slice(*span)]  # noqa: E731
    max_ids = max_tokens - num_ends
    units: list[FittedUnit] = []
    for span, ids in zip(spans, tokenizer.encode_ids(list(map(render, spans))), strict=True):
        unit = FittedUnit(span=span, ids=tuple(ids))
        if len(ids) <= max_ids or policy is LengthPolicy.TRUNCATE:
            units.append(unit)
        elif policy is LengthPolicy.SPLIT:
            units += _cut(text, unit, tokenizer, max_ids, render, whole)
        else:
            raise UnitTooLongError(
                span=source.back(span), num_tokens=len(ids) + num_ends, max_tokens=max_tokens
            )
    return [
        unit
        if len(unit.ids) <= max_ids
        else FittedUnit(span=unit.span, ids=unit.ids[:max_ids], is_truncated=True)
        for unit in units
    ]


def _cut(
    text: str,
    unit: FittedUnit,
    tokenizer: SourceTokenizer,
    max_ids: int,
    render: Callable[[Span], str],
    whole: Sequence[Span],
) -> Iterator[FittedUnit]:
    """Halves until every part fits; a single character that does not is left whole.

    A part that holds no letter is no unit.
    """
    halves = halve(text, unit.span) if len(unit.ids) > max_ids else None
    if halves is not None and whole:
        halves = _around(whole, unit.span, halves)
    if halves is None:
        yield unit
        return
    spans = [(start, end) for start, end in halves if holds_letter(text[start:end])]
    for span, ids in zip(spans, tokenizer.encode_ids(list(map(render, spans))), strict=True):
        yield from _cut(text, FittedUnit(span=span, ids=tuple(ids)), tokenizer, max_ids, render, whole)


def _around(whole: Sequence[Span], span: Span, halves: tuple[Span, Span]) -> tuple[Span, Span] | None:
    """The halves with the cut moved out of a range that it would go through; None where that leaves one
    alone."""
    (start, left), (right, end) = halves
    rank = bisect_right(whole, left, key=lambda span: span[0]) - 1
    if rank >= 0 and whole[rank][0] < right and left < whole[rank][1]:
        first, last = whole[rank]
        if first < left or right < last:
            cut = first if first > start else last
            left = right = cut
    return ((start, left), (right, end)) if start < left and right < end else None


def halve(text: str, span: Span) -> tuple[Span, Span] | None:
    """Cuts a unit in two near its middle: at a clause's end, else at white space, else between characters.

    A base character keeps its combining marks. None where there is nothing left to cut.
    """
    start, end = span
    middle = (start + end) // 2
    quarter = max(1, (end - start) // 4)
    cuts = [match.end() for match in _CLAUSE_END.finditer(text, start + quarter, end - quarter)]
    cuts = cuts or [match.end() for match in _SPACES.finditer(text, start, end)]
    cut = min(cuts, key=lambda position: abs(position - middle)) if cuts else _between_characters(text, span)
    left, right = trimmed(text, (start, cut)), trimmed(text, (cut, end))
    return (left, right) if left and right else None


def _between_characters(text: str, span: Span) -> int:
    start, end = span
    middle = (start + end) // 2
    for cut in range(middle, end):
        continues = unicodedata.category(text[cut]).startswith("M") or text[cut] in _SKIN_TONES
        joined = _ZERO_WIDTH_JOINER in (text[cut], text[cut - 1])
        if cut > start and not continues and not joined:
            return cut
    return middle
