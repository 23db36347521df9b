"""Numbers with what they count, drawn by a seed from CLDR as Babel has it, and their translations."""

import datetime
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Literal

from babel import Locale
from babel.dates import format_date
from babel.localedata import locale_identifiers
from babel.numbers import format_currency, format_decimal, format_percent
from babel.units import format_unit

UNITS = tuple(
    f"{quantity}-{unit}"
    for quantity, units in {
        "length": "kilometer meter centimeter millimeter mile foot inch",
        "mass": "kilogram gram pound ounce",
        "volume": "liter milliliter",
        "area": "square-meter hectare",
        "speed": "kilometer-per-hour",
        "temperature": "celsius",
        "digital": "megabyte gigabyte",
        "energy": "kilowatt-hour",
        "power": "watt kilowatt",
        "electric": "volt",
        "duration": "hour minute second day week month year",
        "angle": "degree",
        "frequency": "hertz",
    }.items()
    for unit in units.split()
)
CURRENCIES = ("EUR", "USD", "GBP", "CHF", "JPY")
VALUES = tuple(
    map(Decimal, ("1", "2", "5", "12", "37", "100", "250", "2500", "12000", "1.5", "3.75", "1299.99"))
)
_NAMED = re.compile(r"[^\W\d_]{2,}")


def draw(chance: random.Random, source: str, target: str) -> tuple[str, str]:
    """A quantity as the source language writes it, and an expression for all that it may be in the target."""
    kinds = (_unit, _unit, _unit, _currency, _currency, _percent, _date, _time)
    return chance.choice(kinds)(chance, source, target)


def _unit(chance: random.Random, source: str, target: str) -> tuple[str, str]:
    unit, value = chance.choice(UNITS), chance.choice(VALUES)
    # Of an English "in" nobody knows whether it is an inch, and a German "J" may be a joule.
    width: Literal["long", "short"] = (
        "long" if unit in ("length-inch", "duration-year") else chance.choice(("long", "short"))
    )
    regions = [Locale.parse(name)._data for name in locale_identifiers() if name.split("_")[0] == target]
    patterns = {form for data in regions for form in _strings(data["unit_patterns"].get(unit, {}))}
    return format_unit(value, unit, width, locale=source), _any(_filled(patterns, value, target))


def _currency(chance: random.Random, source: str, target: str) -> tuple[str, str]:
    code, value = chance.choice(CURRENCIES), chance.choice(VALUES)
    value = value.quantize(Decimal("0.01")) if value % 1 else value
    written = format_currency(value, code, locale=source, currency_digits=False)
    if chance.random() < 0.3:
        written = f"{format_decimal(value, locale=source)} {code}"
    locale = Locale(target)
    names = {code, locale.currency_symbols.get(code, code), locale.currencies[code]}
    names |= set(locale._data["currency_names_plural"].get(code, {}).values())
    names |= {re.split("[ -]", name)[-1] for name in names}
    return written, _any(
        _filled({f"{{0}} {name}" for name in names} | {f"{name}{{0}}" for name in names}, value, target)
    )


def _percent(chance: random.Random, source: str, target: str) -> tuple[str, str]:
    value = chance.choice(VALUES)
    names = ("%", "percent", "per cent", "Prozent")
    return format_percent(value / 100, locale=source, decimal_quantization=False), _any(
        _filled([f"{{0}} {name}" for name in names], value, target)
    )


def _date(chance: random.Random, source: str, target: str) -> tuple[str, str]:
    day = datetime.date(1950, 1, 1) + datetime.timedelta(days=chance.randrange(36_000))
    width = chance.choice(("long", "medium", "full"))
    months = {names[day.month] for context in Locale(target).months.values() for names in context.values()}
    months = {month for month in months if len(month) > 2} | {f"0?{day.month}"}
    return format_date(day, width, locale=source), (
        rf"(?=.*(?<!\d)0?{day.day}(?!\d))(?=.*(?<!\w){_any(months)}(?!\w))(?=.*{day.year})"
    )


def _time(chance: random.Random, source: str, target: str) -> tuple[str, str]:
    hour, minute = chance.randrange(24), chance.choice((0, 15, 30, 45))
    twelve, half = (hour % 12) or 12, "p" if hour >= 12 else "a"
    written = f"{hour}:{minute:02} Uhr" if source == "de" else f"{twelve}:{minute:02} {half}.m."
    forms = [rf"(?<!\d)0?{hour}[:.]{minute:02}(?!\d|\.\d)(?! ?[AaPp]\.?[Mm])"]
    forms.append(rf"(?<!\d)0?{twelve}[:.]{minute:02} ?(?i:{half})\.?(?i:m)\b")
    if minute == 0:
        forms += [rf"(?<!\d){hour} Uhr", rf"(?<!\d){twelve} ?(?i:{half})\.?(?i:m)\b"]
    return written, _any(forms)


def _strings(data: Mapping[str, object] | str) -> Iterator[str]:
    """All forms of a unit, in each number and case, but for those behind another ("per kilometer")."""
    if isinstance(data, str):
        yield data
    else:
        for name, value in data.items():
            if name not in ("per", "gender"):
                yield from _strings(value)  # type: ignore[arg-type]


def _filled(patterns: Iterable[str], value: Decimal, language: str) -> Iterator[str]:
    """Expressions for the patterns with the value as the language may write it."""
    written = set()
    for format in ("#,##0.###", "#,##0.00"):
        text = format_decimal(value, format, locale=language)
        written |= {text, format_decimal(value, format, locale=language, group_separator=False)}
    # Spaces between thousands are DIN's and ISO's way in every language.
    point = Locale(language).number_symbols["latn"]["decimal"]
    spaced = format_decimal(value, "#,##0.##", locale="en").replace(",", " ").replace(".", point)
    written |= {spaced, spaced.replace(" ", "\u00a0")}
    number = rf"(?<![\d.,])(?:{'|'.join(map(re.escape, written))})(?![\d]|[.,]\d)"
    for pattern in patterns:
        if "{0}" in pattern:
            before, behind = (re.escape(part.strip()) for part in pattern.split("{0}"))
            yield rf"(?:{before}\s?){number}" if before else rf"{number}[\s-]?(?i:{behind})\w?(?!\w)"


def _any(expressions: Iterable[str]) -> str:
    return f"(?:{'|'.join(sorted(expressions))})"
