"""Brackets and quotation marks that belong together, and those that a translation has in their place. Pure.

A pair stands within a line. What has no partner there is left alone, but for quotation marks that show by
themselves on which side they stand: a quotation may have several lines.
"""

import functools
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files

from dragoman_bundle.languages import primary_language, writes_spaces

from dragoman_server.text.brackets import BRACKETS, CLOSING, FAMILY, ONE_SIDED, OPENING, QUOTES, Nesting
from dragoman_server.text.marks import Kind, Mark, blanked
from dragoman_server.text.words import IS_UNSPACED

_LOW = "„‚〝"
_SPACED = "«»‹›"
"""Have spaces on their inner side, as French writes them."""
_WIDE = {"(": "（", ")": "）"}
_SIGN = re.compile(f"[{re.escape(BRACKETS + ''.join(QUOTES))}\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# "the '90s", "rock 'n' roll", "'tis"
_ELISION = re.compile(r"['’](?:\d|(?:s|n|t|d|m|re|ve|ll|em|tis|twas|cause|til|cos)(?!\w))", re.IGNORECASE)
_SPACES = tuple(" \u00a0\u202f")


def find_pairs(text: str, marks: Sequence[Mark], target: str) -> list[Mark]:
    """Marks of the signs of pairs that stand outside of the marks, which are in order; both in the text's.

    A text without a letter stays as it is, and has none.
    """
    if _SIGN.search(text) is None or not any(map(str.isalpha, text)):
        return []
    return sorted(_Finder(blanked(text, marks, "x"), target).find(), key=lambda mark: mark.span)


class _Finder:
    """Finds the pairs of a text."""

    def __init__(self, text: str, target: str) -> None:
        self._text = text
        self._target = target
        self._opened = Nesting()
        self._last_word = self._last_space = -1
        """The last signs that a word, and that a space, stands before."""

    def find(self) -> Iterator[Mark]:
        last = 0
        for found in _SIGN.finditer(self._text):
            place, sign = found.start(), found[0]
            between, last = self._text[last:place], place + 1
            if any(map(str.isalnum, between)):
                self._last_word = place
            if any(map(str.isspace, between)):
                self._last_space = place
            if sign in CLOSING:
                self._opened.append(sign, place)
            elif sign in OPENING:
                yield from self._close(OPENING[sign], place)
            elif sign in FAMILY:
                yield from self._quote(sign, place)
            else:
                yield from self._alone(self._opened.close(None))
        yield from self._alone(self._opened.close(None))

    def _quote(self, sign: str, place: int) -> Iterator[Mark]:
        family, before, behind = FAMILY[sign], self._at(place - 1), self._at(place + 1)
        is_opened = family in self._opened
        opens = not (behind.isspace() or behind in ",.;:!?)") and (
            before.isspace()
            or self._opened.last == place - 1
            or unicodedata.category(before) in ("Ps", "Pi", "Pd")
        )
        closes = not before.isspace() and not _goes_on(behind)
        if sign in "'’‘":
            opens = opens and behind.isalnum() and not _ELISION.match(self._text, place)
        elif not opens and not closes:
            # "« Non »", and what touches words on both sides.
            opens, closes = not is_opened, is_opened
        if sign in _LOW or (opens and not (closes and is_opened)):
            self._opened.append(family, place)
        elif closes and is_opened:
            yield from self._close(family, place)
        elif closes and sign in ONE_SIDED:
            yield self._mark(Kind.CLOSING, place)

    def _close(self, key: str | int, place: int) -> Iterator[Mark]:
        *alone, start = self._opened.close(key) or [-1]
        if start < 0:
            return
        yield from self._alone(alone)
        touches = _goes_on(self._at(start - 1)) or _goes_on(self._at(place + 1))
        # "file(s)" is a word, and nothing is within "()".
        if self._last_word > start and not (touches and self._last_space <= start):
            is_plain = self._text[start] == self._text[place] and self._text[place] in "\"'"
            yield self._mark(Kind.OPENING, start, is_plain=is_plain)
            yield self._mark(Kind.CLOSING, place, is_plain=is_plain)

    def _alone(self, places: Iterable[int]) -> Iterator[Mark]:
        """What opens and is not closed is a mark where it shows that it opens."""
        return (self._mark(Kind.OPENING, place) for place in places if self._text[place] in ONE_SIDED)

    def _mark(self, kind: Kind, place: int, *, is_plain: bool = False) -> Mark:
        sign, start, end = self._text[place], place, place + 1
        family = FAMILY.get(sign)
        if family is None or is_plain:
            return Mark(span=(start, end), kind=kind, output=_bracket(sign, self._target))
        if sign in _SPACED and kind is Kind.OPENING:
            while self._text[end : end + 1] in _SPACES:
                end += 1
        elif sign in _SPACED:
            while self._text[start - 1] in _SPACES:
                start -= 1
        own = quotes(self._target)[2 * (family % 2) :]
        space = "\u00a0" if own[0] in _SPACED and primary_language(self._target) == "fr" else ""
        return Mark(
            span=(start, end), kind=kind, output=own[0] + space if kind is Kind.OPENING else space + own[1]
        )

    def _at(self, place: int) -> str:
        return self._text[place] if 0 <= place < len(self._text) else " "


def _goes_on(character: str) -> bool:
    """Whether it is of a word that a bracket next to it may be a part of."""
    return character.isalnum() and not IS_UNSPACED.match(character)


def _bracket(sign: str, target: str) -> str:
    if writes_spaces(target):
        return unicodedata.normalize("NFKC", sign) if sign in "（）［］｛｝" else sign
    return _WIDE.get(sign, sign) if primary_language(target) in ("zh", "yue", "ja") else sign


@functools.cache
def quotes(language: str) -> str:
    """The four quotation marks of a language, of its region where that has its own."""
    listed = tomllib.loads(files("dragoman_server.text.find").joinpath("quotes.toml").read_text("utf-8"))
    tags = {name: marks for marks, names in listed.items() for name in names.split()}
    primary = primary_language(language)
    region = language.replace("_", "-").lower().partition("-")[2]
    return tags.get(f"{primary}-{region}") or tags.get(primary, "“”‘’")
