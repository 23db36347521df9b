"""Numbers of a text, and whether an answer has their values.

A number is in the answer where its value stands there in the notation of the target language: German "2.500"
as "2,500" or "2500", never as "2,50", with the unit that it counts, in whatever form. A date may have its
parts in any order, a time may be one of twelve hours where the answer says of which half of the day.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from dragoman_server.text.find.notation import SIGNS, SPACES, YEAR_BEHIND, Notation, Number, notation

_SPACE = rf"[{SPACES}]"
_FRACTIONS = "½¼¾⅐-⅞↉"
_RAISED = "²³¹⁰-⁹⁺⁻"
_NUMBER = re.compile(
    r"(?:(?<![\w.,\-−+)])[-−+])?"
    r"(?:(?<![\w.,/-])\d{4}-\d{2}-\d{2}(?!\d)|"
    rf"\d{{1,3}}(?:{_SPACE}\d{{3}})++(?:[.,]\d++)?(?!\d)|\d++(?:[.,:/’']\d++)*+)[{_FRACTIONS}{_RAISED}]*+"
    rf"|[{_FRACTIONS}]"
)
_GROUPS = re.compile(r"\d+")
_SEPARATORS = re.compile(r"[^\d]")
_TIME = re.compile(r"(2[0-4]|[01]?\d):([0-5]\d)(?::([0-5]\d))?")
_DAY, _MONTH, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:[12]\d{3}|\d{2})"
_DATE = re.compile(
    rf"(?:{_DAY}([./]){_MONTH}\1|{_MONTH}(/){_DAY}\2){_YEAR}|[12]\d{{3}}([./-]){_MONTH}\3{_DAY}"
)
_HOUR = re.compile(r"(?:2[0-4]|[01]?\d)(?::[0-5]\d)?")
_HALF_DAY = 12
_SMALL_CHANGE = 2
"""Decimals of which zeros at the end may be left out: of more of them nobody writes "5,0000 €"."""
_DAY_ALONE = re.compile(r"0?[1-9]|[12]\d|3[01]")
_MAX_BEFORE = 24
"""Characters before a number that are looked at for what belongs to it."""
_VALUE = re.compile(r"-?\d+(?:\.\d+)?")
"""A reading of a number in a language's notation; one that is none begins with "="."""
_WITH_FRACTION = re.compile(rf"(\d*)([{_FRACTIONS}])")


def numbers_in(text: str, language: str = "") -> list[Number]:
    """The numbers of a text, in order; of a known language with the units, hours and months beside them."""
    if not language:
        return [Number(span=found.span(), text=found[0]) for found in _NUMBER.finditer(text)]
    numbers: list[Number] = []
    end = 0
    known = notation(language)
    for found in _NUMBER.finditer(text):
        if found.start() >= end:
            number = _with_company(text, found, known, end)
            is_alone = number.text == text[slice(*number.span)] and number.text.isdecimal()
            if is_alone and known.ordinal and (ending := known.ordinal.match(text, number.span[1])):
                number = replace(number, span=(number.span[0], ending.end()), is_ordinal=True)
            numbers.append(number)
            end = number.span[1]
    return numbers


def _with_company(text: str, found: re.Match[str], known: Notation, begin: int) -> Number:
    """A number with what belongs to it, which stands behind `begin`."""
    start, end = found.span()
    number = Number(span=(start, end), text=found[0])
    if known.before and (unit := known.before.search(text, max(begin, start - _MAX_BEFORE), start)):
        return replace(number, span=(unit.start(), end), units=known.units_of(unit["unit"]))
    if text[max(start - 1, 0) : start].isalpha():
        # "H2 m", and "ist5 Dollar" of a model that swallowed a space.
        return number
    if _HOUR.fullmatch(found[0]) and (time := known.time.match(text, end)):
        return replace(number, span=(start, time.end()), times=_times(found[0], time))
    if known.behind and (unit := known.behind.match(text, end)):
        return replace(number, span=(start, unit.end()), units=known.units_of(unit["unit"]))
    if known.months and _DAY_ALONE.fullmatch(found[0]):
        before = None
        if (year := known.month_behind.match(text, end)) is None:
            before = known.month_before.search(text, max(begin, start - _MAX_BEFORE), start)
            year = YEAR_BEHIND.match(text, end) if before else None
        if year:
            month = known.months[(before or year)["month"]]
            place = before.start() if before else start, year.end()
            return replace(number, span=place, date=(int(found[0]), month, year["year"] or ""))
    return number


def _times(figure: str, found: re.Match[str]) -> frozenset[str]:
    """The times of a day that an hour may be with the word behind it."""
    hour, minute = int(figure.partition(":")[0]), figure.partition(":")[2] or "00"
    groups = found.groupdict()
    if groups.get("clock"):
        hours = {hour, hour + _HALF_DAY} if groups["clock"][0] == "o" and hour < _HALF_DAY else {hour}
    else:
        is_afternoon = groups.get("pm") or (groups.get("half") or "a") in "Pp"
        if not 1 <= hour <= _HALF_DAY:
            return frozenset((f"={figure}{found[0]}",))
        hours = {hour % _HALF_DAY + _HALF_DAY * bool(is_afternoon)}
    return frozenset(f"{each % 24}:{minute}:00" for each in hours)


def missing_numbers(
    numbers: Sequence[Number], answer: str, *, source_language: str, target_language: str
) -> list[Number]:
    """The numbers of a source whose value, or what they count, the answer lacks. A number that stands there
    twice must be in the answer twice."""
    if not numbers:
        return []
    answered = [(other, _readings(other, target_language)) for other in numbers_in(answer, target_language)]
    free = list(range(len(answered)))
    missing = []
    for number in sorted(numbers, key=lambda other: -len(other.text)):
        wanted = _readings(number, source_language)
        may_stay = _may_stay(number, wanted, _readings(number, target_language))
        match = next(
            (
                index
                for index in free
                if (wanted & answered[index][1] or (may_stay and answered[index][0].text == number.text))
                and (not number.units or number.units & answered[index][0].units)
            ),
            None,
        )
        if match is not None:
            free.remove(match)
        elif not _take_parts(number.text, [answered[index][0].text for index in free]):
            missing.append(number)
    return sorted(missing, key=lambda other: other.span)


def _may_stay(number: Number, wanted: frozenset[str], read: frozenset[str]) -> bool:
    """Whether a number says the same as it stands: "2.500" does not, and a version's does."""
    is_of_source = all(map(_VALUE.fullmatch, wanted)) and wanted != read
    is_quantity = bool(number.units) or "," in number.text or all(map(_VALUE.fullmatch, read))
    return not (number.date or number.times or (is_of_source and is_quantity))


def is_ambiguous(number: str, language: str) -> bool:
    """Whether a plain number has three decimals, as it would have a thousand's group in another language."""
    return re.fullmatch(rf"[1-9]\d{{0,2}}{re.escape(notation(language).decimal)}\d{{3}}", number) is not None


def _readings(found: Number, language: str) -> frozenset[str]:
    """The possible values of a number, as strings that are equal where the values are."""
    if found.times:
        return found.times
    if found.date is not None:
        return frozenset(("/".join(sorted(filter(None, map(str, found.date)))),))
    number = found.text
    sign = "-" if number[0] in "-−" else ""
    digits = number.lstrip(SIGNS)
    time = _TIME.fullmatch(digits)
    if time:
        hours, minutes, seconds = int(time[1]), time[2], time[3] or "00"
        return frozenset((f"{hours}:{minutes}:{seconds}",))
    if _DATE.fullmatch(digits):
        return frozenset(("/".join(sorted(part.lstrip("0") for part in _GROUPS.findall(digits))),))
    fraction = _WITH_FRACTION.fullmatch(digits)
    if fraction:
        # All of them are less than one, and what is before them has any number of digits.
        decimals = f"{unicodedata.numeric(fraction[2]):.4f}"[1:].rstrip("0")
        return frozenset((number, sign + (fraction[1].lstrip("0") or "0") + decimals))
    point = notation(language).decimal
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
        return frozenset((f"={sign}{grouped}",))
    value = "".join(parts).lstrip("0") or "0"
    if len(decimals) <= _SMALL_CHANGE:
        decimals = decimals.rstrip("0")
    return frozenset((sign + value + ("." + decimals if decimals else ""),))


def _take_parts(number: str, answers: Sequence[str]) -> bool:
    """Whether the groups of a date stand in the answer, in whatever order and with whatever between them."""
    if not _DATE.fullmatch(number):
        return False
    wanted = Counter(part.lstrip("0") for part in _GROUPS.findall(number))
    has = Counter(part.lstrip("0") for answer in answers for part in _GROUPS.findall(answer))
    return wanted <= has
