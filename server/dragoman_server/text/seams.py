"""Where parts of a sentence are put together, of which one language writes spaces and the other does not.

Pure. Of "我认识汤姆。" the name is kept: "I know" stands before it with a space, and a full stop behind.
"""

import html
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dragoman_bundle.languages import primary_language, writes_spaces

from dragoman_server.text.words import IS_UNSPACED, OWN_MARKS, PLAIN_MARKS, TO_PLAIN

_WIDE_TO_PLAIN = {mark: TO_PLAIN[mark] for mark in "。，、；：！？（）"}
_CLOSING = frozenset(".,;:!?%…。，、；：！？")
_ENDING = frozenset("。！？）")
_QUOTES = "\"'"
_TOKEN = re.compile(
    r"(?P<tag><!--.*?(?:-->|\Z)|</?[a-zA-Z](?:\"[^\"]*\"|'[^']*'|[^'\"<>])*+>)|&#?\w{1,40};|.",
    re.DOTALL,
)


@dataclass(frozen=True)
class Seams:
    """Seams in a translation whose source is of the other kind."""

    target: str
    is_markup: bool = False
    """Whether what is kept may hold tags, in which nothing changes, and character references."""

    def write(self, text: str) -> str:
        """Text of the source that nothing protects, with the punctuation of the translation's language."""
        tokens = _tokens(text, is_markup=self.is_markup)
        if writes_spaces(self.target):
            return _narrow(tokens)
        own = OWN_MARKS.get(primary_language(self.target), "")
        return _wide(tokens, dict(zip(PLAIN_MARKS, own, strict=True)) if own[3:] else {})

    def gaps(self, gaps: Sequence[str], texts: Sequence[str]) -> list[str]:
        """The gaps before, between and behind the texts, with the spaces that belong there."""
        fit = self._spaced if writes_spaces(self.target) else _unspaced
        found = [
            fit(gap, before, behind)
            for gap, before, behind in zip(gaps, ["", *texts], [*texts, ""], strict=True)
        ]
        found[0] = found[0].lstrip(" ")
        return [*found[:-1], found[-1].rstrip(" ")]

    def _spaced(self, gap: str, before: str, behind: str) -> str:
        seen = "".join(token.seen for token in _tokens(gap, is_markup=self.is_markup))
        if not seen:
            return gap + " " * _are_apart(before, behind)
        return " " * _are_apart(before, seen) + gap + " " * _are_apart(seen, behind)


def seams_between(source: str, target: str, *, is_markup: bool = False) -> Seams | None:
    """The seams between two languages; None where both write spaces, or neither does."""
    return None if writes_spaces(source) == writes_spaces(target) else Seams(target, is_markup)


def _are_apart(before: str, behind: str) -> bool:
    """Whether a space belongs between two texts of a language that writes spaces."""
    if not before or not behind or before[-1].isspace() or behind[0].isspace():
        return False
    # A "%" or "." that something follows at once begins a placeholder or a name.
    closes = _closes(behind[0]) and not (behind[0] in _CLOSING and behind[1:2].isalnum())
    return not (closes or _opens(before[-1]) or "Pd" in map(unicodedata.category, (before[-1], behind[0])))


def _opens(character: str) -> bool:
    return character != "" and unicodedata.category(character) in ("Ps", "Pi")


def _closes(character: str) -> bool:
    return character in _CLOSING or unicodedata.category(character) in ("Pe", "Pf")


@dataclass(frozen=True)
class _Token:
    """A character, or a tag or character reference of markup."""

    text: str
    seen: str
    """What a reader sees of it; nothing of a tag."""


def _tokens(text: str, *, is_markup: bool) -> list[_Token]:
    if not is_markup:
        return [_Token(character, character) for character in text]
    return [
        _Token(found[0], "" if found["tag"] else html.unescape(found[0])) for found in _TOKEN.finditer(text)
    ]


def tags_of(text: str) -> str:
    """The tags and comments of a text with markup, without what stands between them."""
    return "".join(token.text for token in _tokens(text, is_markup=True) if not token.seen)


def _in_context(tokens: Sequence[_Token]) -> Iterator[tuple[_Token, str, str]]:
    """Each token with what is seen before and behind it."""
    behind = [""] * len(tokens)
    for place in range(len(tokens) - 1, 0, -1):
        behind[place - 1] = tokens[place].seen[:1] or behind[place]
    before = ""
    for token, after in zip(tokens, behind, strict=True):
        yield token, before, after
        before = token.seen[-1:] or before


def _narrow(tokens: Sequence[_Token]) -> str:
    """The text with a space behind what closes and before what opens, unless another such mark stands
    there."""
    written: list[str] = []
    is_due = False
    for token, before, _ in _in_context(tokens):
        seen, mark = token.seen, _WIDE_TO_PLAIN.get(token.seen)
        closes_behind = seen != "" and (_closes(seen) or (seen in _QUOTES and before in _ENDING))
        if mark and closes_behind:
            while written and written[-1] == " ":
                written.pop()
            is_due = True
        elif is_due and not closes_behind and not token.text.startswith("</"):
            written.append("" if seen.isspace() else " ")
            is_due = False
        elif mark and not (before.isspace() or _opens(before)):
            written.append(" ")
        written.append(mark or token.text)
    return "".join(written) + " " * is_due


def _wide(tokens: Sequence[_Token], marks: Mapping[str, str]) -> str:
    """Full-width marks have their space within. Those of numbers, "..." and ":-)" stay."""
    written: list[str] = []
    opened: list[bool] = []
    is_wide = False
    for token, before, behind in _in_context(tokens):
        mark = token.seen
        if is_wide and mark == " ":
            continue
        if mark == "(":
            ends = not before or before.isspace() or _closes(before)
            opened.append(ends)
        elif mark == ")":
            ends = opened.pop() if opened else not before or before.isalnum() or _closes(before)
        else:
            ends = (
                not before.isspace()
                and (not behind or behind.isspace() or behind in _QUOTES or _closes(behind))
                and not (mark == "." and "." in (before, behind))
            )
        wide = marks.get(token.text) if ends else None
        if mark:
            is_wide = wide is not None
        if wide and mark == "(":
            while written and written[-1] == " ":
                written.pop()
        written.append(wide or token.text)
    return "".join(written)


def _unspaced(gap: str, before: str, behind: str) -> str:
    inner = gap.strip(" ")
    left = "" if _touches(before[-1:], inner[:1]) else gap[: len(gap) - len(gap.lstrip(" "))]
    right = "" if _touches(inner[-1:], behind[:1]) else gap[len(gap.rstrip(" ")) :]
    return left + inner + right


def _touches(one: str, other: str) -> bool:
    """Whether no space belongs between two characters: next to Latin letters and digits one may stand."""
    return bool(IS_UNSPACED.match(one) or IS_UNSPACED.match(other)) and not (
        (one.isascii() and one.isalnum()) or (other.isascii() and other.isalnum())
    )
