"""How a language writes numbers and what they count, as CLDR has it (`cldr.jsonl` of `.ci/cldr.py`). Pure."""

import functools
import gettext
import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from dragoman_bundle.languages import primary_language

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
_OTHER_NAMES = {"nb": "no", "nn": "no", "tl": "fil"}
_O_CLOCK = {"de": "Uhr", "lb": "Auer", "nl": "uur", "en": "o['’]clock", "da": "Uhr"}
"""Words behind the hour of a day; the hours of English are twelve."""


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
    month: re.Pattern[str] | None
    """Finds a month's name; None of a language without, as of Chinese."""
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
        if not self.data or self.month is None:
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
        month=re.compile(f"(?P<month>{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})")
        if names
        else None,
        time=re.compile(rf"[{SPACES}]?(?:{halves}{'|(?P<clock>' + clock + ')' if clock else ''})(?!\w)"),
        data=data,
    )


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
