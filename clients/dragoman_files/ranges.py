"""A text with ranges of its own that are not translated."""

from collections.abc import Iterable
from numbers import Integral
from typing import Self

from dragoman_files.errors import UnitError


class RangedText(str):
    """A text, and the ranges of it that stay as they are."""

    __slots__ = ("protected_ranges",)

    protected_ranges: tuple[tuple[int, int], ...]
    """The ranges, each the first code point and one past the last."""

    def __new__(cls, text: str, protected_ranges: Iterable[tuple[int, int]]) -> Self:
        """Raises TypeError for what is no range, UnitError for one that is not in the text."""
        protected = super().__new__(cls, text)
        protected.protected_ranges = tuple(_checked(pair, len(text)) for pair in protected_ranges)
        return protected


def _checked(pair: tuple[int, int], length: int) -> tuple[int, int]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"protected_ranges holds {pair!r:.40}, not a pair (start, end)")
    start, end = pair
    if not isinstance(start, Integral) or not isinstance(end, Integral):
        raise TypeError(f"protected_ranges holds {pair!r:.40}, not a pair of integers")
    if not 0 <= start < end <= length:
        raise UnitError(
            f"protected_ranges has {start} to {end}, which is no range of a text of {length} code points: a "
            "range has a first code point, and one past its last"
        )
    return int(start), int(end)


def ranges_of(text: str) -> tuple[tuple[int, int], ...]:
    """The ranges of a text that has some."""
    return text.protected_ranges if isinstance(text, RangedText) else ()
