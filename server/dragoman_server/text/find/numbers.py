"""Numbers of a text, and whether an answer has their values.

A number is in the answer where its digits stand there as they were, or in the notation of the target
language: German "2.500" as "2.500", "2,500" or "2500", never as "2,50". A date may have its parts in any
order, a time may be one of twelve hours.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_bundle.languages import primary_language

from dragoman_server.text.mapped import Span

_SPACE = r"[\u00a0\u202f\u2009 ]"
_FRACTIONS = "½¼¾⅐-⅞↉"
_RAISED = "²³¹⁰-⁹⁺⁻"
_NUMBER = re.compile(
    r"(?:(?<![\w.,\-−+)])[-−+])?"
    r"(?:(?<![\w.,/-])\d{4}-\d{2}-\d{2}(?!\d)|"
    rf"\d{{1,3}}(?:{_SPACE}\d{{3}})++(?:[.,]\d++)?(?!\d)|\d++(?:[.,:/’']\d++)*+)[{_FRACTIONS}{_RAISED}]*+"
    rf"|[{_FRACTIONS}]"
)
_SIGNS = "-−+"
_GROUPS = re.compile(r"\d+")
_SEPARATORS = re.compile(r"[^\d]")
_TIME = re.compile(r"(2[0-4]|[01]?\d):([0-5]\d)(?::([0-5]\d))?")
_DAY, _MONTH, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:[12]\d{3}|\d{2})"
_DATE = re.compile(
    rf"(?:{_DAY}([./]){_MONTH}\1|{_MONTH}(/){_DAY}\2){_YEAR}|[12]\d{{3}}([./-]){_MONTH}\3{_DAY}"
)
_WITH_FRACTION = re.compile(rf"(\d*)([{_FRACTIONS}])")

# Languages whose decimals have a point; the others write a comma.
_POINT = frozenset(("en", "zh", "ja", "ko", "th", "he", "hi", "ms", "sw", "ga", "cy", "ur", "bn", "ta", "te"))

# Those that group thousands by a space that does not break (CLDR); French and Norwegian by a narrow one.
_NARROW_SPACE = frozenset(("fr", "nb", "nn", "no"))
_SPACE_GROUPS = _NARROW_SPACE | frozenset(
    ("bg", "cs", "et", "fi", "hu", "lt", "lv", "pl", "ru", "sk", "sv", "uk")
)


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number as it stands in a text."""

    span: Span
    text: str


def numbers_in(text: str) -> list[Number]:
    """The numbers of a text, in order."""
    return [Number(span=found.span(), text=found[0]) for found in _NUMBER.finditer(text)]


def missing_numbers(
    numbers: Sequence[Number], answer: str, *, source_language: str, target_language: str
) -> list[Number]:
    """The numbers of a source whose value the answer lacks. A number that stands there twice must be in
    the answer twice."""
    if not numbers:
        return []
    answered = [(other.text, _readings(other.text, target_language)) for other in numbers_in(answer)]
    free = list(range(len(answered)))
    missing = []
    for number in sorted(numbers, key=lambda other: -len(other.text)):
        wanted = _readings(number.text, source_language)
        match = next(
            (index for index in free if answered[index][0] == number.text or wanted & answered[index][1]),
            None,
        )
        if match is not None:
            free.remove(match)
        elif not _take_parts(number.text, [answered[index][0] for index in free]):
            missing.append(number)
    return sorted(missing, key=lambda other: other.span)


def in_notation(number: str, *, source_language: str, target_language: str) -> str:
    """A plain number in the target's notation; anything that is not certain to be one as it stands."""
    source_point, target_point = _decimal_point(source_language), _decimal_point(target_language)
    if source_point == target_point or number.isdecimal():
        return number
    group = "," if source_point == "." else "."
    digits = number.lstrip(_SIGNS)
    decimals = rf"{re.escape(source_point)}\d+"
    if not re.fullmatch(rf"\d{{1,3}}(?:{re.escape(group)}\d{{3}})*(?:{decimals})?|\d+{decimals}", digits):
        return number
    return number.translate({ord(group): _group(target_language), ord(source_point): target_point})


def _readings(number: str, language: str) -> frozenset[str]:
    """The possible values of a number, as strings that are equal where the values are."""
    sign = "-" if number[0] in "-−" else ""
    digits = number.lstrip(_SIGNS)
    time = _TIME.fullmatch(digits)
    if time:
        hours, minutes, seconds = int(time[1]), time[2], time[3] or "00"
        return frozenset((f"{hours % 12}:{minutes}:{seconds}",))
    if _DATE.fullmatch(digits):
        return frozenset(("/".join(sorted(part.lstrip("0") for part in _GROUPS.findall(digits))),))
    fraction = _WITH_FRACTION.fullmatch(digits)
    if fraction:
        # All of them are less than one, and what is before them has any number of digits.
        decimals = f"{unicodedata.numeric(fraction[2]):.4f}"[1:].rstrip("0")
        return frozenset((number, sign + (fraction[1].lstrip("0") or "0") + decimals))
    point = _decimal_point(language)
    grouped = re.sub(r"[\s\u00a0\u202f\u2009’']", "", digits)
    separators = _SEPARATORS.findall(grouped)
    if not separators:
        # Zeros before it are part of what is no quantity, as of a telephone number.
        return frozenset((sign + grouped,))
    integer, mark, decimals = grouped.rpartition(point)
    group = "," if point == "." else "."
    if not mark:
        integer, decimals = grouped, ""
    parts = integer.split(group)
    if point in integer or group in decimals or any(len(part) != 3 for part in parts[1:]):
        return frozenset((sign + grouped,))
    value = "".join(parts).lstrip("0") or "0"
    decimals = decimals.rstrip("0")
    return frozenset((sign + value + ("." + decimals if decimals else ""),))


def _take_parts(number: str, answers: Sequence[str]) -> bool:
    """Whether the groups of a date stand in the answer, in whatever order and with whatever between them."""
    if not _DATE.fullmatch(number):
        return False
    wanted = Counter(part.lstrip("0") for part in _GROUPS.findall(number))
    has = Counter(part.lstrip("0") for answer in answers for part in _GROUPS.findall(answer))
    return wanted <= has


def _group(language: str) -> str:
    primary = primary_language(language)
    if primary in _SPACE_GROUPS:
        return "\u202f" if primary in _NARROW_SPACE else "\u00a0"
    return "," if primary in _POINT else "."


def _decimal_point(language: str) -> str:
    return "." if primary_language(language) in _POINT else ","
