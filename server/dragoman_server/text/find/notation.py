"""How a language writes numbers and what they count, as CLDR has it (`cldr.jsonl` of `.ci/cldr.py`). Pure."""

import functools
import gettext
import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from dragoman_bundle.languages import primary_language

from dragoman_server.text.mapped import Span

SIGNS = "-−+"
SPACES = "\u00a0\u202f\u2009 "
_NO_UNIT = frozenset(
    ("in", "a", "A", "at", "as", "an", "to", "d", "j", "n", "no", "on", "is", "da", "do", "de")
)
"""Forms that are words of other meanings far more often."""
_LONG_ENOUGH = 3
"""Letters of a form that may have another ending, as "Tages" of "Tage"."""
_MAX_ENDING = 1
_POWERS = "²³"
_MAX_DIGITS = 9
"""Digits of a number whose plural category is asked for."""
_HALVES = r"(?P<half>[AaPp])(?:\.[Mm](?:\.(?!\Z))?|[Mm])|(?:{am})|(?P<pm>{pm})"
_YEAR = r"(?P<year>[12]\d{3})(?![\d.,:]\d|\d)"
YEAR_BEHIND = re.compile(rf"(?:st|nd|rd|th)?(?!\w)(?:,[{SPACES}]{_YEAR})?")
"""Finds the ending of a day behind its month, and the year if there is one."""
_OTHER_NAMES = {"nb": "no", "nn": "no", "tl": "fil"}
_O_CLOCK = {"de": "Uhr", "lb": "Auer", "nl": "uur", "en": "o['’]clock", "da": "Uhr"}
"""Words behind the hour of a day; the hours of English are twelve."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number as it stands in a text, with what it counts."""

    span: Span
    text: str
    """The number alone."""
    units: frozenset[str] = frozenset()
    """The units that it may be of; CLDR's names, and the codes of currencies."""
    times: frozenset[str] = frozenset()
    """The times of a day that it may be: "17:30"."""
    is_ordinal: bool = False
    """Whether it has the ending of an ordinal: "21st"."""
    date: tuple[int, int, str] | None = None
    """The day, the month and the year, "" where there is none, of a date in words."""


@dataclass(frozen=True, kw_only=True)
class Notation:
    """The notation of one language."""

    decimal: str
    group: str
    behind: re.Pattern[str] | None
    """Finds what a number counts behind it, and `before` what stands before it."""
    before: re.Pattern[str] | None
    units: Mapping[str, frozenset[str]]
    """The units that a form may be of, by the form as it is and in small letters."""
    months: Mapping[str, int]
    """The months by their names; none of a language without, as of Chinese."""
    month_behind: re.Pattern[str]
    """Finds a month, and the year if there is one, behind a day."""
    month_before: re.Pattern[str]
    ordinal: re.Pattern[str] | None
    """Finds the ending that makes a number an ordinal."""
    ordinals: Sequence[tuple[str, str]]
    """Which numbers are written with which of those endings."""
    time: re.Pattern[str]
    """Finds what makes an hour of a number."""
    data: Mapping[str, Any]
    """All that is known of the language; nothing of one that is not known."""

    def units_of(self, form: str) -> frozenset[str]:
        """The units that a form may be of, whatever its ending."""
        form = re.sub(f"[{SPACES}]", " ", form)
        if form[-1] in _POWERS and form not in self.units:
            return frozenset((form,))
        for spelling in (form, form.casefold()):
            for end in range(len(spelling), max(0, len(spelling) - _MAX_ENDING - 1), -1):
                if spelling[:end] in self.units:
                    return self.units[spelling[:end]]
        return frozenset()

    @functools.cached_property
    def category(self) -> Callable[[int], str]:
        """The plural category of a whole number."""
        # What reads compiled catalogues in the standard library; not in the types.
        rule: Callable[[int], int] = getattr(gettext, "c2py")(self.data["plural"])  # noqa: B009
        return lambda number: str(self.data["categories"][rule(number)])

    def with_unit(self, figure: str, units: frozenset[str], *, is_one: bool) -> str | None:
        """A number with the unit that it may be of; None where the language's names for all are unknown."""
        for unit, known in self.data.get("units", {}).items():
            if unit in units:
                forms = known["written"]
                count = (
                    1 if is_one else int(figure) if figure.isdecimal() and len(figure) < _MAX_DIGITS else None
                )
                form = forms.get("other" if count is None else self.category(count))
                return str(form or forms.get("other") or next(iter(forms.values()))).format(figure)
        for code, currency in self.data.get("currencies", {}).items():
            if code in units:
                symbol = currency["symbol"]
                space = self.data["currency_space"] or ("\u00a0" if symbol.isalpha() else "")
                return (
                    f"{symbol}{space}{figure}" if self.data["currency_first"] else f"{figure}{space}{symbol}"
                )
        # A power of a unit that has no name here is its own.
        return next((f"{figure}\u00a0{unit}" for unit in units if unit[-1] in _POWERS), None)

    def date(self, day: int, month: int, year: str) -> str | None:
        """A day in words; None where the language's are unknown."""
        if not self.data or not self.months:
            return None
        pattern: str = self.data["dates"][0 if year else 1]
        values = {"d": str(day), "dd": f"{day:02}", "MMMM": self.data["month"][month - 1], "y": year}
        return re.sub(
            r"'([^']*)'|[dMy]+", lambda found: found[1] or str(values.get(found[0], found[0])), pattern
        )

    def hour(self, hour: int, minute: str, *, is_full: bool) -> str:
        """A time of day, with its minutes unless it `is_full`."""
        name = _O_CLOCK.get(self.data.get("name", ""), "")
        if "a" in self.data.get("time", ""):
            half = self.data["periods"][hour >= 12]
            return f"{hour % 12 or 12}{'' if is_full else ':' + minute}\u202f{half}".replace("\u202f", " ")
        if is_full and name.isalpha():
            return f"{hour} {name}"
        return f"{hour}:{minute}{' ' + name if name.isalpha() else ''}"


@functools.cache
def notation(language: str) -> Notation:
    """The notation of a language, of its region where that has its own."""
    primary = primary_language(language)
    data = _read(_OTHER_NAMES.get(primary, primary))
    symbols = data.get("symbols", {})
    pair = symbols.get(language.replace("_", "-").lower()) or symbols.get(data.get("name")) or ",."
    units: dict[str, set[str]] = defaultdict(set)
    first: dict[str, set[str]] = defaultdict(set)
    for unit, known in data.get("units", {}).items():
        for form in known["forms"]:
            units[form].add(unit)
    for code, currency in data.get("currencies", {}).items():
        for form in currency["forms"]:
            for name in {form, re.split("[ -]", form)[-1]}:
                units[name].add(code)
            if not re.search(r"[^\W\d_]{4}", form):
                first[form].add(code)
    units = {form: found for form, found in units.items() if form and form not in _NO_UNIT}
    names = {
        name: number
        for number, listed in enumerate(data.get("months", ()), start=1)
        for name in listed
        if not any(map(str.isdigit, name))
    }
    month = f"(?P<month>{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})"
    ordinal = _ordinals().get(primary, {})
    am, pm = map(re.escape, data.get("periods", ("AM", "PM")))
    halves = _HALVES.format(am=am, pm=pm)
    clock = _O_CLOCK.get(primary, "")
    return Notation(
        decimal=pair[0],
        group=pair[1:],
        behind=_pattern(
            rf"(?:(?<=[½¼¾]) an?)?[{SPACES}-]?(?P<unit>{{}}|[A-Za-zµ]{{{{1,3}}}}[{_POWERS}])"
            rf"(?![\w{_POWERS}]|-\w)",
            units,
        ),
        before=_pattern(rf"(?<!\w)(?P<unit>{{}})[{SPACES}]?\Z", first),
        units={form: frozenset(found) for form, found in _both(units, first)},
        months=names,
        month_behind=re.compile(
            rf"(?:\.|st|nd|rd|th|er|º|ª|e)?[{SPACES}](?:of |de |di |d['’])?(?:{month})(?!\w)"
            rf"(?:\.(?=[{SPACES}]\d))?(?:,?[{SPACES}](?:de )?{_YEAR})?"
        ),
        month_before=re.compile(rf"(?<!\w)(?:{month})\.?[{SPACES}]\Z"),
        ordinal=re.compile(f"(?:{ordinal['ending']})(?!\\w)") if ordinal else None,
        ordinals=ordinal.get("written", ()),
        time=re.compile(rf"[{SPACES}]?(?:{halves}{'|(?P<clock>' + clock + ')' if clock else ''})(?!\w)"),
        data=data,
    )


def written(number: Number, *, source_language: str, target_language: str) -> str | None:
    """A number with what it counts as the target writes it; None where the target's words are unknown."""
    target = notation(target_language)
    if number.date is not None:
        return target.date(*number.date)
    if number.times:
        time = min(number.times, key=len)
        if time.startswith("="):
            return None
        hour, minute, _ = time.split(":")
        return target.hour(int(hour), minute, is_full=":" not in number.text)
    figure = in_notation(number.text, source_language=source_language, target_language=target_language)
    if number.is_ordinal:
        endings = target.ordinals
        return next((figure + ending for numbers, ending in endings if re.fullmatch(numbers, figure)), None)
    if not number.units:
        return figure
    return target.with_unit(figure, number.units, is_one=number.text == "1")


def in_notation(number: str, *, source_language: str, target_language: str) -> str:
    """A plain number in the target's notation; anything that is not certain to be one as it stands."""
    source_point, target_point = notation(source_language).decimal, notation(target_language).decimal
    if source_point == target_point or number.isdecimal():
        return number
    group = "," if source_point == "." else "."
    digits = number.lstrip(SIGNS)
    decimals = rf"{re.escape(source_point)}\d+"
    if not re.fullmatch(rf"\d{{1,3}}(?:{re.escape(group)}\d{{3}})*(?:{decimals})?|\d+{decimals}", digits):
        return number
    target_group = notation(target_language).group
    return number.translate({ord(group): target_group, ord(source_point): target_point})


@functools.cache
def _ordinals() -> Mapping[str, Mapping[str, Any]]:
    path = files("dragoman_server.text.find") / "ordinals.toml"
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {language: table for languages, table in tables.items() for language in languages.split()}


def _both(*tables: Mapping[str, set[str]]) -> Iterable[tuple[str, set[str]]]:
    merged: dict[str, set[str]] = defaultdict(set)
    for table in tables:
        for form, found in table.items():
            merged[form] |= found
    for form, found in list(merged.items()):
        if form.casefold() not in merged or len(form) > _LONG_ENOUGH:
            merged[form.casefold()] |= found
    return merged.items()


def _pattern(frame: str, forms: Mapping[str, Collection[str]]) -> re.Pattern[str] | None:
    """An expression in which any of the forms stands, the longest first; units in words with any ending."""
    if not forms:
        return None
    listed: Sequence[str] = sorted(forms, key=lambda form: (-len(form), form))
    return re.compile(frame.format("|".join(_form(form, forms[form]) for form in listed)))


def _form(form: str, units: Collection[str]) -> str:
    spaced = rf"[{SPACES}-]".join(map(re.escape, re.split(rf"[{SPACES}-]", form)))
    if form.isalpha() and (len(form) > _LONG_ENOUGH or (len(form) == _LONG_ENOUGH and form[0].isupper())):
        # A currency's name may begin another word, as "Euro" does.
        return rf"(?i:{spaced})" + ("s?" if any(map(str.isupper, units)) else rf"[^\W\d_]{{0,{_MAX_ENDING}}}")
    return spaced


def _read(language: str) -> Mapping[str, Any]:
    """The line of a language; nothing where there is none. Others are not kept in memory."""
    read = files("dragoman_server.text.find").joinpath("cldr.jsonl").read_text("utf-8")
    begin = f'{{"name":"{language}",'
    line = next((line for line in read.splitlines() if line.startswith(begin)), "{}")
    data: Mapping[str, Any] = json.loads(line)
    return data
