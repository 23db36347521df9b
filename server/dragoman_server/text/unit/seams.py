"""Where parts of a sentence are put together, of which one language writes spaces and the other does not.

Pure. Of "我认识汤姆。" the name is kept: "I know" stands before it with a space, and a full stop behind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dragoman_bundle.languages import primary_language, writes_spaces

from dragoman_server.text.words import IS_UNSPACED, is_of_word

_FULL_WIDTH = {"zh": "。，；：！？（）", "yue": "。，；：！？（）", "ja": "。、；：！？（）"}
_NARROW = {
    "。": ". ",
    "，": ", ",
    "、": ", ",
    "；": "; ",
    "：": ": ",
    "！": "! ",
    "？": "? ",
    "（": " (",
    "）": ") ",
}
_CLOSING = ".,;:!?)%"


@dataclass(frozen=True)
class Seams:
    """Between two languages."""

    marks: Mapping[int, str]
    """What replaces punctuation of the source's language."""
    has_spaces: bool
    """Whether the translation's language writes them."""

    def gaps(self, gaps: Sequence[str], texts: Sequence[str]) -> list[str]:
        """The gaps before, between and behind the texts, with the spaces that belong there."""
        fit = _spaced if self.has_spaces else _unspaced
        found = [
            fit(gap, before, behind)
            for gap, before, behind in zip(gaps, ["", *texts], [*texts, ""], strict=True)
        ]
        return [*found[:-1], found[-1].rstrip(" ")]


def seams_between(source: str, target: str) -> Seams | None:
    """None where both of the languages write spaces, or neither does."""
    if writes_spaces(source) == writes_spaces(target):
        return None
    if writes_spaces(target):
        return Seams(marks=str.maketrans(_NARROW), has_spaces=True)
    wide = _FULL_WIDTH.get(primary_language(target), "")
    return Seams(marks=str.maketrans(dict(zip(".,;:!?()", wide, strict=False))), has_spaces=False)


def _spaced(gap: str, before: str, behind: str) -> str:
    left = " " if before and not before[-1].isspace() and gap and is_of_word(gap[0]) else ""
    end = gap[-1:]
    right = " " if behind and end and (is_of_word(end) or end in _CLOSING) else ""
    return left + gap + right


def _unspaced(gap: str, before: str, behind: str) -> str:
    inner = gap.strip(" ")
    left = "" if _touches(before[-1:], inner[:1]) else gap[: len(gap) - len(gap.lstrip(" "))]
    right = "" if _touches(inner[-1:], behind[:1]) else gap[len(gap.rstrip(" ")) :]
    return left + inner + right


def _touches(one: str, other: str) -> bool:
    """Whether no space belongs between two characters: beside Latin letters and digits one may stand."""
    return bool(IS_UNSPACED.match(one) or IS_UNSPACED.match(other)) and not (
        (one.isascii() and one.isalnum()) or (other.isascii() and other.isalnum())
    )
