"""What a text is in any format: its white space and references, and ranges of it that are not translated."""

import html
import re
import tomllib
import unicodedata
from collections.abc import Iterable
from importlib.resources import files
from numbers import Integral
from typing import Any, Self

from dragoman_files.format import UnitError

BLANK = " \t\r\n\f"
"""The white space of all formats; no-break spaces are no part of it."""


def read_table(name: str) -> dict[str, Any]:
    """The content of one of the package's files in TOML."""
    return tomllib.loads(files("dragoman_files").joinpath(name).read_text("utf-8"))


ELEMENTS: dict[str, dict[str, frozenset[str]]] = {
    format_: {kind: frozenset(names.split()) for kind, names in kinds.items()}
    for format_, kinds in read_table("elements.toml").items()
}
"""Names of elements by format and kind."""
_BREAK = re.compile(r"(?<=[^ \t\r\n])[ \t]*\r?\n[ \t]*(?=[^ \t\r\n])")
"""A line break with text on both sides."""
ITEMS = "-–—*•"
"""How a line begins that does not go on with the line before: items, and speakers of a dialogue."""
_RUN = re.compile(r"[ \t\r\n\f]+")


_HUGE_NUMBER = re.compile(r"&#[0-9]{1000,}")


def unescape(text: str) -> str:
    """The text without references of HTML. A number of any length is none of a character."""
    return html.unescape(_HUGE_NUMBER.sub("&#1114112", text) if "&#" in text else text)


def has_letters(text: str) -> bool:
    """Whether there may be something to translate: a letter of any script."""
    return any(map(str.isalpha, text))


def primary_language(tag: str) -> str:
    """The language of a tag, without region or script."""
    return re.split("[-_]", tag.strip().lower(), maxsplit=1)[0]


def is_sound(text: str) -> bool:
    """Whether it can travel: a lone surrogate, which only an escape can write, is no text."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def join_lines(text: str) -> str:
    """The text with its lines joined by spaces, those of Chinese and Japanese by nothing.

    Blank lines stay, and the breaks before items.
    """

    def joint(match: re.Match[str]) -> str:
        before, after = text[match.start() - 1], text[match.end()]
        if after in ITEMS:
            return match[0]
        return "" if _is_wide(before) and _is_wide(after) else " "

    return _BREAK.sub(joint, text)


def collapse(text: str) -> str:
    """The text as HTML shows it: white space is one space, that of Chinese and Japanese at breaks is none."""
    return _RUN.sub(" ", join_lines(text) if "\n" in text else text)


def _is_wide(character: str) -> bool:
    """Whether it is of a script that has no spaces between words."""
    return unicodedata.east_asian_width(character) in "WF" and not "가" <= character <= "힣"


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

    def __getnewargs__(self) -> tuple[str, tuple[tuple[int, int], ...]]:  # type: ignore[override]
        """What a copy is made of."""
        return str(self), self.protected_ranges


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
