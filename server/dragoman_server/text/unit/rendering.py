"""A unit as the model is shown it: with masks for what is protected, and without what floats.

Every code point leads back to where it came from, as in `cleaning`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dragoman_server.text.cleaning import Span
from dragoman_server.text.protection.protected import Protected


@dataclass(frozen=True, kw_only=True)
class Mask:
    """A word that stands for a protected span."""

    word: str
    item: Protected
    position: int
    """Where it stands in what the model is shown."""


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """The text that the model is shown of a unit."""

    text: str
    starts: Sequence[int]
    """For each of its code points, where its origin begins in the cleaned text."""
    ends: Sequence[int]
    """And where that ends."""
    masks: tuple[Mask, ...] = ()
    """The masks, in the order of the text."""

    def of_source(self, span: Span) -> Span:
        """Where in the cleaned text a span of it stands, which must not be empty."""
        return self.starts[span[0]], self.ends[span[1] - 1]

    def place_of(self, position: int) -> int:
        """Where in it a position of the cleaned text is: before what does not come before that."""
        low, high = 0, len(self.starts)
        while low < high:
            middle = (low + high) // 2
            if self.starts[middle] < position:
                low = middle + 1
            else:
                high = middle
        return low

    def with_text(self, text: str) -> "Rendered":
        """This text in other letters, as many."""
        assert len(text) == len(self.text)
        return replace(self, text=text)


def render(text: str, span: Span, items: Sequence[Protected], words: Mapping[Protected, str]) -> Rendered:
    """The part of `text` at `span`, where each of the `items` that has one of the `words` is replaced by it.

    Those that float are left out, with the space before or behind them where there are both.
    """
    start, end = span
    if not items:
        return Rendered(text=text[start:end], starts=range(start, end), ends=range(start + 1, end + 1))
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    masks = []
    for item in items:
        first, last = item.span
        _copy(text, start, first, parts, starts, ends)
        start = last
        if item.floats:
            before = parts[-1][-1:] if parts and parts[-1] else " "
            behind = text[last : min(last + 1, end)]
            if before.isspace() and behind.isspace():
                start += 1
            elif text[first:last].isspace() and not before.isspace() and behind and not behind.isspace():
                # The words on its sides are two: a no-break space is set in where the answer has its space.
                _copy(text, first, last, parts, starts, ends)
        elif item in words:
            word = words[item]
            # It is a word of its own, whatever it touches.
            before = " " if parts and parts[-1][-1:].isalnum() else ""
            behind = " " if text[last : min(last + 1, end)].isalnum() else ""
            masks.append(Mask(word=word, item=item, position=len(starts) + len(before)))
            parts.append(before + word + behind)
            starts += [first] * len(parts[-1])
            ends += [last] * len(parts[-1])
        else:
            _copy(text, first, last, parts, starts, ends)
    _copy(text, start, end, parts, starts, ends)
    return Rendered(text="".join(parts), starts=starts, ends=ends, masks=tuple(masks))


def _copy(text: str, start: int, end: int, parts: list[str], starts: list[int], ends: list[int]) -> None:
    if start < end:
        parts.append(text[start:end])
        starts += range(start, end)
        ends += range(start + 1, end + 1)


def outside(span: Span, items: Sequence[Protected]) -> Iterator[Span]:
    """The ranges of a span that no item covers, and that are not empty."""
    start, end = span
    for item in items:
        if start < item.span[0]:
            yield start, item.span[0]
        start = max(start, item.span[1])
    if start < end:
        yield start, end
