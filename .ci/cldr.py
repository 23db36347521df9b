"""Writes what CLDR knows of languages and of numbers, from Babel: `python .ci/cldr.py [--check]`."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from babel import Locale
from babel.core import get_global
from babel.localedata import locale_identifiers
from babel.plural import to_gettext

ROOT = Path(__file__).parents[1]
PATH = ROOT / "server" / "dragoman_server" / "text" / "find" / "cldr.jsonl"
LANGUAGES_PATH = ROOT / "bundle" / "dragoman_bundle" / "languages.tsv"
LANGUAGES = (
    "af ar az be bg bn bs ca cs cy da de el en es et eu fa fi fil fr ga gl gu he hi hr hu hy id is it ja ka "
    "kk km kn ko ky lo lt lv mk ml mn mr ms my nb ne nl nn no or pa pl ps pt ro ru si sk sl so sq sr sv sw "
    "ta te th tk tr uk ur uz vi yue zh zu"
)
UNITS = {
    "length": "kilometer meter decimeter centimeter millimeter mile yard foot inch nautical-mile",
    "mass": "kilogram gram milligram microgram tonne pound ounce",
    "volume": "liter deciliter centiliter milliliter cubic-meter gallon",
    "area": "square-kilometer square-meter square-centimeter hectare acre square-mile square-foot",
    "speed": "kilometer-per-hour meter-per-second mile-per-hour knot",
    "temperature": "celsius fahrenheit kelvin",
    "digital": "kilobyte megabyte gigabyte terabyte byte kilobit megabit gigabit",
    "energy": "kilowatt-hour joule kilojoule calorie kilocalorie",
    "power": "watt kilowatt megawatt gigawatt horsepower",
    "electric": "volt ampere ohm",
    "duration": "millisecond second minute hour day week month year",
    "angle": "degree",
    "frequency": "hertz kilohertz megahertz gigahertz",
    "pressure": "bar hectopascal",
    "concentr": "percent permille",
}
CURRENCIES = "EUR USD GBP CHF JPY CNY SEK NOK DKK PLN CZK HUF RUB TRY INR BRL AUD CAD UAH KRW"
IN_WORDS = "mile yard foot inch nautical-mile pound ounce gallon acre knot horsepower degree"
"""Units that are written as words; so are durations."""
# Checkpoints have these, and CLDR has none or another.
OTHER_CODES = {"fuv": "ff", "pbt": "ps", "quy": "qu", "tgl": "tl", "twi": "tw"}
OTHER_SCRIPTS = {
    **dict.fromkeys(("acm", "acq", "ajp", "apc", "azb", "prs"), "arab"),
    "hne": "deva",
    "tzm": "tfng",
}
CATEGORIES = ("zero", "one", "two", "few", "many", "other")


def language(name: str) -> dict[str, Any]:
    """What is known of a language: names and forms are those of its regions, too."""
    locale = Locale.parse(name)
    data = locale._data
    others = [
        Locale.parse(other)._data
        for other in locale_identifiers()
        if other.split("_")[0] == name and not {"Shaw", "Dsrt"} & {*other.split("_")}
    ]
    units = {}
    for quantity, unit in ((quantity, unit) for quantity, listed in UNITS.items() for unit in listed.split()):
        key = f"{quantity}-{unit}"
        widths = data["unit_patterns"].get(key)
        if widths:
            in_words = quantity == "duration" or unit in IN_WORDS.split()
            short = widths.get("long" if in_words else "short") or widths["long"]
            written = {
                category: short[category] for category in CATEGORIES if isinstance(short.get(category), str)
            }
            forms = {form for each in others for form in _forms(each["unit_patterns"].get(key, {}))}
            forms = {" ".join(form.replace("{0}", " ").split()) for form in forms}
            units[key] = {"written": written, "forms": sorted(forms)}
    currencies = {
        code: {
            "symbol": locale.currency_symbols.get(code, code),
            "forms": sorted(
                {code, locale.currency_symbols.get(code, code)}
                | {
                    str(name)
                    for each in others
                    for name in each["currency_names_plural"].get(code, {}).values()
                }
                | {str(each["currency_names"][code]) for each in others if code in each["currency_names"]}
            ),
        }
        for code in CURRENCIES.split()
    }
    months: list[set[str]] = [set() for _ in range(12)]
    for context in data["months"].values():
        for width in ("wide", "abbreviated"):
            for number, month in context.get(width, {}).items():
                months[number - 1].add(month.strip("."))
    pattern = locale.currency_formats["standard"].pattern.split(";")[0]
    return {
        # Whole numbers that are not written as "1e6" have no exponent.
        "plural": re.sub(r"\be\b", "0", to_gettext(locale.plural_form).partition("plural=")[2].rstrip(";")),
        "categories": [tag for tag in CATEGORIES if tag in {*locale.plural_form.tags, "other"}],
        "ordinals": [tag for tag in CATEGORIES if tag in {*locale.ordinal_form.tags, "other"}],
        "units": units,
        "currency_first": pattern.lstrip("\u200e\u200f").startswith("¤"),
        "currency_space": "\u00a0" if "\u00a0" in pattern else "",
        "currencies": currencies,
        "months": [sorted(names) for names in months],
        "month": [locale.months["format"]["wide"].get(number, "") for number in range(1, 13)],
        "dates": [locale.date_formats["long"].pattern, str(locale.datetime_skeletons["MMMMd"].pattern)],
        "time": locale.time_formats["short"].pattern,
        "periods": _periods(data),
    }


def _periods(data: Any) -> list[str]:
    """The words for the halves of a day, where times are written with them."""
    for context in ("format", "stand-alone"):
        for width in ("wide", "abbreviated", "narrow"):
            names = data["day_periods"].get(context, {}).get(width, {})
            if "am" in names and "pm" in names:
                return [names["am"], names["pm"]]
    return ["AM", "PM"]


def _forms(data: Any) -> Iterator[str]:
    """What stands beside the number, in all numbers and cases."""
    if isinstance(data, str):
        yield data
    else:
        for name, value in data.items():
            if name not in ("per", "gender", "narrow"):
                yield from _forms(value)


def symbols(language: str) -> dict[str, str]:
    """Decimal point and sign between groups of a language and its regions, of Latin digits."""
    found = {}
    for name in sorted(locale_identifiers()):
        locale = Locale.parse(name)
        if locale.language == language and not (locale.script or locale.variant):
            latin = locale.number_symbols.get("latn", {})
            found[name.replace("_", "-").lower()] = latin.get("decimal", ".") + latin.get("group", ",")
    # A region that writes as its language does needs none.
    return {tag: pair for tag, pair in found.items() if tag == language or pair != found[language]}


def languages() -> str:
    """A row for each language, and one for each region where the script is not the language's."""
    english = {code: str(name) for code, name in Locale("en").languages.items() if "_" not in code}
    longer: dict[str, list[str]] = {}
    for code, short in {**get_global("language_aliases"), **OTHER_CODES}.items():
        if (len(code), len(short)) == (3, 2):
            longer.setdefault(short, []).append(code)
    likely = {
        tag.replace("_", "-").lower(): full.split("_")[1].lower()
        for tag, full in get_global("likely_subtags").items()
        if full.count("_") == 2
    } | OTHER_SCRIPTS
    regions = [tag for tag in likely if tag[-3:-2] == "-" and likely[tag] != likely.get(tag[:-3], "latn")]
    rows = [
        "# .ci/cldr.py writes it: tag\tlonger codes\tscript, where not Latin\tnames, the English one first"
    ]
    for tag in sorted({*english, *longer, *OTHER_SCRIPTS, *(tag for tag in regions if tag[:-3] in english)}):
        names = [english[tag]] if tag in english else []
        if tag in english and tag in locale_identifiers():
            names.append(str(Locale.parse(tag).languages.get(tag, english[tag])))
        script = likely.get(tag, "").replace("latn", "") if "-" not in tag else likely[tag]
        names = list(dict.fromkeys(name for name in names if "," not in name))
        rows.append("\t".join([tag, " ".join(sorted(longer.get(tag, []))), script, ",".join(names)]).rstrip())
    return "\n".join(rows) + "\n"


def main() -> None:
    """A line for each language, of which a server reads those of its models."""
    lines = (
        json.dumps(
            {"name": name, "symbols": symbols(name), **language(name)},
            ensure_ascii=False,
            separators=(",", ":"),
        )
        for name in LANGUAGES.split()
    )
    written = {
        PATH: "".join(f"{line}\n" for line in lines),
        LANGUAGES_PATH: languages(),
    }
    for path, text in written.items():
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path} is not what Babel has: run python .ci/cldr.py")


if __name__ == "__main__":
    main()
