"""Texts that know where they come from. All arithmetic of offsets is here.

Spans are half-open and count code points. Pure.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Span = tuple[int, int]
Edit = tuple[Span, str]
"""A span of a text, and what takes its place."""


@dataclass(frozen=True)
class Mapped:
    """A text that was made of another, its origin."""

    text: str
    origin: str
    starts: Sequence[int]
    """The beginning of the range of the origin that each code point of `text` stands for."""
    ends: Sequence[int]
    """The end of that range."""

    @classmethod
    def of(cls, text: str) -> "Mapped":
        """A text that nothing was done to."""
        return cls(text, text, range(len(text)), range(1, len(text) + 1))

    def edited(self, edits: Iterable[Edit]) -> "Mapped":
        """This text with the edits, which are in order and do not overlap, made in it.

        A replacement stands for all that it replaces, and an insertion for an empty range.
        """
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        position = 0
        for span, text in edits:
            start, end = span
            if position < start:
                parts.append(self.text[position:start])
                starts += self.starts[position:start]
                ends += self.ends[position:start]
            if text:
                first, last = self.back(span)
                parts.append(text)
                starts += [first] * len(text)
                ends += [last] * len(text)
            position = end
        if position == 0 and not parts:
            return self
        parts.append(self.text[position:])
        starts += self.starts[position:]
        ends += self.ends[position:]
        return Mapped("".join(parts), self.origin, starts, ends)

    def spelled(self, text: str) -> "Mapped":
        """This text in other characters, as many."""
        assert len(text) == len(self.text)
        return Mapped(text, self.origin, self.starts, self.ends)

    def part(self, span: Span) -> "Mapped":
        """The part of this text at a span, with the same origin."""
        start, end = span
        return Mapped(self.text[start:end], self.origin, self.starts[start:end], self.ends[start:end])

    def back(self, span: Span) -> Span:
        """The range of the origin that a span of this text stands for.

        It is empty for the place between two characters, but within what both stand for it is all of that.
        """
        start, end = span
        if start < end:
            return self.starts[start], self.ends[end - 1]
        before = self.ends[start - 1] if start else 0
        behind = self.starts[start] if start < len(self.starts) else before
        return behind, max(before, behind)

    def forth(self, position: int) -> int:
        """The place in this text of a position of the origin: before all that does not begin before it."""
        return bisect_left(self.starts, position)

    def onto(self, span: Span) -> Span:
        """The span of this text that stands for anything within a range of the origin."""
        return bisect_right(self.ends, span[0]), bisect_left(self.starts, span[1])

    def then(self, other: "Mapped") -> "Mapped":
        """What was made of this text, as made of this text's origin."""
        if self.text is self.origin:
            return Mapped(other.text, self.origin, other.starts, other.ends)
        spans = list(map(self.back, zip(other.starts, other.ends, strict=True)))
        return Mapped(other.text, self.origin, [start for start, _ in spans], [end for _, end in spans])


def moved(span: Span, offset: int) -> Span:
    """A span of a part as one of the whole, in which the part begins at the offset."""
    return span[0] + offset, span[1] + offset


def join(gaps: Sequence[str], pieces: Sequence[str], *, filler: str) -> tuple[str, list[int]]:
    """Puts `pieces` between `gaps`, of which the first stands before them all and the last behind.

    Where two pieces touch, `filler` goes between them. Returns the text and each piece's offset in it.
    """
    *before, last = gaps
    parts: list[str] = []
    offsets = []
    length = 0
    for gap, piece in zip(before, pieces, strict=True):
        space = gap or (filler if parts else "")
        parts += [space, piece]
        offsets.append(length + len(space))
        length += len(space) + len(piece)
    return "".join(parts) + last, offsets
