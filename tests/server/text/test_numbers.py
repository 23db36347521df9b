"""Numbers and whether an answer has their values."""

import subprocess
import sys

import pytest
from babel import Locale
from tests.server.text.answering import PLAIN, copies, shipped, translated

from dragoman_server.text.find.notation import in_notation, notation, written
from dragoman_server.text.find.numbers import missing_numbers, numbers_in


def missing(source: str, answer: str, source_language: str = "de", target_language: str = "en") -> list[str]:
    lost = missing_numbers(
        numbers_in(source, source_language),
        answer,
        source_language=source_language,
        target_language=target_language,
    )
    return [number.text for number in lost]


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("2.500 Euro", "2,500 euros"),
        ("2.500 Euro", "2500 euros"),
        ("1.000.000", "1,000,000"),
        ("3,5 Prozent", "3.5 percent"),
        ("3,50 Euro", "3.5 euros"),
        ("1.234,56", "1,234.56"),
        ("-5 Grad", "-5 degrees"),
        ("−5 Grad", "-5 degrees"),
        ("17:30 Uhr", "5:30 p.m."),
        ("am 3.5.2023", "on 5/3/2023"),
        ("am 3.5.2023", "on 2023-05-03"),
        ("am 3. Mai", "on May 3rd"),
        ("030 1234567", "030 1234567"),
        ("A4 und 20er", "the 20s and A4"),
        ("10 000 Leute", "10,000 people"),
        ("keine", "none at all"),
        ("am 2023-05-03", "on 5/3/2023"),
        ("am 12/31/24", "on 12/31/24"),
        ("1½ Tassen", "1.5 cups"),
        ("½ Liter", "½ a litre"),
        *((f"{digits}½ Liter", f"{digits}.5 litres") for digits in ("1" * 400, "1" * 5_000)),
        ("10² ist", "10² is"),
        ("+5 Grad", "5 degrees"),
        ("2 und 2", "2 and 2"),
        ("am 3.5.2023", "on 3 of 5 in 2023"),
        # The date has its parts before another number takes one.
        ("3 Hunde am 3.5.2023", "2023 - 5 - 3"),
        ("Version 3.10", "version 3.10"),
        ("100 km", "100 kilometres"),
        ("100 km", "a 100-kilometer"),
        ("3 Tagen", "3 days"),
        ("20 °C", "20 degrees Celsius"),
        ("5 Euro", "€5"),
        ("1.299,99 EUR", "1,299.99 euros"),
        ("20 %", "20 percent"),
        ("15 Uhr", "3 p.m."),
        ("3 Uhr", "3 o'clock"),
        ("am 5. Mai 2024", "on May 5th, 2024"),
        ("am 5. Mai 2024", "on the 5th of May 2024"),
    ],
)
def test_a_value_is_kept(source: str, answer: str) -> None:
    assert missing(source, answer) == []


@pytest.mark.parametrize(
    ("source", "answer", "lost"),
    [
        ("2.500 Euro", "2,50 euros", ["2.500"]),
        ("1.000.000", "1,000", ["1.000.000"]),
        ("-5 Grad", "55 degrees", ["-5"]),
        ("-5 Grad", "5 degrees", ["-5"]),
        ("3,5 Prozent", "3,500 percent", ["3,5"]),
        ("2.500", "2.500", ["2.500"]),
        ("100 km", "100 kilograms", ["100"]),
        ("5 km", "5 miles", ["5"]),
        ("5 KILOMETER", "5 miles", ["5"]),
        ("5 Euro", "$5", ["5"]),
        ("5 Euro", "5", ["5"]),
        ("15 Uhr", "3 a.m.", ["15"]),
        ("17:30 Uhr", "5:30", ["17:30"]),
        ("am 5. Mai", "on Friday, 5.", ["5"]),
        ("am 5. Mai 2024", "on May 5, 2042", ["5"]),
        ("am 3.5.2023", "in 20,2033", ["3.5.2023"]),
        ("030 1234567", "030 77", ["1234567"]),
        ("030 1", "30 1", ["030"]),
        ("2 und 2", "2", ["2"]),
        ("17:30", "17:03", ["17:30"]),
        ("17:30", "6:30 p.m.", ["17:30"]),
        ("25:13 Punkte", "1:13 points", ["25:13"]),
        ("Version 1.2.3", "version 3.2.1", ["1.2.3"]),
        ("1½ Tassen", "1 cup", ["1½"]),
        ("½ Liter", "a litre", ["½"]),
        ("10² ist", "102 is", ["10²"]),
        ("10² ist", "10 is", ["10²"]),
    ],
)
def test_a_value_is_lost(source: str, answer: str, lost: list[str]) -> None:
    assert missing(source, answer) == lost


@pytest.mark.parametrize(
    ("number", "written"),
    [("2.500", "2,500"), ("3,5", "3.5"), ("1.234,56", "1,234.56"), ("3.5.2023", "3.5.2023"), ("2.5", "2.5"),
     ("17:30", "17:30"), ("-1.000", "-1,000"), ("1848", "1848")],
)  # fmt: skip
def test_a_plain_number_is_written_as_the_target_language_does(number: str, written: str) -> None:
    assert in_notation(number, source_language="de", target_language="en") == written
    assert in_notation(number, source_language="de", target_language="fr") == number


@pytest.mark.parametrize(
    ("language", "written"),
    [("fr", "12\u202f500,75"), ("sv", "12\u00a0500,75"), ("de", "12.500,75"), ("ja", "12,500.75")],
)
def test_thousands_are_grouped_as_the_target_groups_them(language: str, written: str) -> None:
    """A point between thousands is a decimal point to whoever groups them by spaces."""
    assert in_notation("12,500.75", source_language="en", target_language=language) == written
    assert not missing_numbers(
        numbers_in("12,500.75"), f"a {written} b", source_language="en", target_language=language
    )


@pytest.mark.parametrize("num_digits", [1, 15, 16, 400, 5_000])
def test_a_number_with_a_fraction_may_have_any_number_of_digits(num_digits: int) -> None:
    number = "1" * num_digits + "½"
    assert missing(number, number) == []
    assert missing(number, "2") == [number]


@pytest.mark.parametrize(
    ("source", "target", "text", "expected"),
    [
        ("de", "en", "100 km", "100 km"),
        ("de", "en", "1.299,99 EUR", "€1,299.99"),
        ("de", "en", "14:30 Uhr", "2:30 PM"),
        ("de", "en", "5. Mai 2024", "May 5, 2024"),
        ("en", "de", "3 p.m.", "15 Uhr"),
        ("en", "de", "$5", "5\u00a0$"),
        ("en", "de", "1 mile", "1 Meile"),
        ("en", "de", "20 degrees", "20 Grad"),
        ("en", "pl", "5 days", "5 dni"),
        ("en", "ru", "3 hours", "3 часа"),
        ("en", "fr", "May 5, 2024", "5 mai 2024"),
        ("es-MX", "de", "2,500.5", "2.500,5"),
        ("de-CH", "en", "2.5", "2.5"),
        ("pa", "de", "1,000", "1.000"),
    ],
)
def test_a_number_is_written_with_what_it_counts(source: str, target: str, text: str, expected: str) -> None:
    [number] = numbers_in(text, source)
    assert number.span == (0, len(text) - (text[-1] == "."))
    assert written(number, source_language=source, target_language=target) == expected


@pytest.mark.parametrize("text", ["5 in a row", "5 mal", "100 Europäer", "3 A", "2 a day", "20 Tagungen"])
def test_other_words_are_no_units(text: str) -> None:
    for language in ("de", "en"):
        assert not numbers_in(text, language)[0].units


def test_the_data_is_what_cldr_has() -> None:
    ran = subprocess.run(
        [sys.executable, ".ci/cldr.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("language", ["de", "fr", "es", "it", "pl", "ru", "ar", "cy", "lv", "sl", "he", "ja"])
def test_a_number_has_its_plural_category_in_every_language(language: str) -> None:
    rule = Locale(language).plural_form
    for number in (*range(120), 1000, 1_000_000, 2_000_000):
        assert notation(language).category(number) == rule(number)


@pytest.mark.parametrize("direction", ["de-en", "en-de"])
@pytest.mark.parametrize(
    ("written", "is_told"),
    [
        ("2{}500", True),
        ("12{}345 kg", True),
        ("0{}125", False),
        ("2{}50", False),
        ("1234{}567", False),
        ("2500", False),
    ],
)
def test_a_number_that_may_be_thousandfold_is_told(direction: str, written: str, is_told: bool) -> None:
    point, group = str(Locale(direction[:2]).number_symbols["latn"]["decimal"]), "{}"

    def kinds(mark: str) -> set[str]:
        text = f"Tom sagt {written.replace(group, mark)} hier."
        return {
            warning.kind.value for warning in translated(text, shipped(direction), PLAIN, copies).warnings
        }

    assert ("number_ambiguous" in kinds(point)) is is_told
    # What groups thousands is certain.
    assert "number_ambiguous" not in kinds({".": ",", ",": "."}[point])


@pytest.mark.parametrize(
    ("source", "text", "target", "wanted"),
    [
        ("en", "He won the 21st race.", "de", "21."),
        ("de", "Er gewann das 21. Rennen.", "en", "21st"),
        ("de", "Das 112. und das 12. Rennen.", "en", "112th"),
        ("de", "Das 3. Rennen.", "en", "3rd"),
        ("fr", "Le 2e prix.", "en", "2nd"),
        ("en", "The 1st prize.", "fr", "1er"),
        ("en", "The 3rd prize.", "es", "3.º"),
        ("de", "Das Rennen gewann er als 5.", "en", "5"),
        ("de", "Es sind 20er.", "en", "20"),
        ("en", "The 3rd prize.", "ja", None),
    ],
)
def test_an_ordinal_is_one_with_its_ending(source: str, text: str, target: str, wanted: str | None) -> None:
    [number, *_] = numbers_in(text, source)
    assert written(number, source_language=source, target_language=target) == wanted


@pytest.mark.parametrize(
    ("direction", "text", "wanted"),
    [
        ("en-de", "He won the 21st race.", "21."),
        ("de-en", "Er gewann das 21. Rennen.", "21st"),
        ("en-de", "It is the 3rd.", "3."),
    ],
)
def test_an_ordinal_that_is_lost_is_put_back_with_its_ending(direction: str, text: str, wanted: str) -> None:
    found = translated(text, shipped(direction), PLAIN, lambda shown: "Ja").text
    assert wanted in found
    for leftover in ("st", "rd", "nd", "th"):
        assert leftover == wanted[-2:] or leftover not in found
