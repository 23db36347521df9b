"""Words that are kept: names behind titles, capitals and letters that no vocabulary has."""

import random
import re
import zoneinfo
from pathlib import Path

import pytest
from tests.growth import assert_linear
from tests.server.text.answering import PLAIN, copies, forgets, shipped, translated

from dragoman_server.text.find.unknown import has_no_letter_of, unreadable_words
from dragoman_server.text.marks import Kind
from dragoman_server.text.stages import prepare

DATA = Path(__file__).parents[4] / "shared" / "data"
PUD, WIKIPEDIA = DATA / "tests" / "ud-pud", DATA / "more" / "wiki-mlqe-pe"
PLACES = sorted({name.rpartition("/")[2] for name in zoneinfo.available_timezones()})
"""Of IANA's time zones, which stand for surnames."""
SURNAMES = [name for name in PLACES if re.fullmatch(r"[A-Z][a-z]{3,}", name)]


def names(text: str, direction: str) -> list[str]:
    marks = prepare(text, shipped(direction), PLAIN, None).marks
    return [text[slice(*mark.span)] for mark in marks if mark.kind is Kind.NAME]


@pytest.mark.parametrize(
    ("direction", "frame"),
    [
        ("de-en", "Herr {} wohnt in Berlin."),
        ("de-en", "Sehr geehrte Frau Dr. {}, danke."),
        ("de-en", "Ich habe Prof. {}-{} gesehen."),
        ("en-de", "Mr. {} lives in Boston."),
        ("en-de", "I met Mrs {}'s friend."),
        ("en-de", "Ask Dr. O'{} tomorrow."),
    ],
)
def test_a_surname_behind_a_title_comes_out_once(direction: str, frame: str) -> None:
    for surname in random.Random(frame).sample(SURNAMES, 30):
        text = frame.replace("{}", surname)
        [name] = names(text, direction)
        assert surname in name
        for answer in (forgets, copies):
            assert translated(text, shipped(direction), PLAIN, answer).text.count(name) == 1


@pytest.mark.parametrize(
    ("direction", "text"),
    [
        ("de-en", "Frau Präsidentin, Herr Doktor, eine Frau Mitte vierzig."),
        ("de-en", "Meine Frau ist da, und der Herr ist fort."),
        ("de-en", "GUTEN MORGEN, HERR MÜLLER! DAS GEHT NICHT."),
        ("de-en", "Drücken Sie ABBRECHEN oder SPEICHERN, aber NICHT hier."),
        ("en-de", "Mr. President, the doctor is here. You MUST NOT go."),
        ("en-de", "CANCEL"),
    ],
)
def test_what_is_no_name_is_translated(direction: str, text: str) -> None:
    assert names(text, direction) == []


def test_acronyms_that_the_vocabulary_lacks_are_kept() -> None:
    assert names("Der GCHQ und die FSLN sind da.", "de-en") == ["GCHQ", "FSLN"]


@pytest.mark.parametrize("direction", ["de-en", "en-de"])
def test_three_of_four_kept_names_stand_in_a_translation_by_people(direction: str) -> None:
    source, target = direction.split("-")
    if not PUD.exists() or not WIKIPEDIA.exists():
        pytest.skip("needs Parallel UD and MLQE-PE")
    texts, references = (
        [line for path in files for line in path.read_text().splitlines()]
        for files in ((PUD / f"pud.{side}", WIKIPEDIA / f"dev.en-de.{side}") for side in (source, target))
    )
    found = [
        name in reference
        for text, reference in zip(texts, references, strict=True)
        for name in names(text, direction)
    ]
    assert len(found) > 40
    assert sum(found) > 0.72 * len(found)


# fmt: off
UNREADABLE = [
    "Škoda", "Čapek", "Žižkov", "Dvořák", "Łódź", "Wałęsa", "Kraków-Łagiewniki", "Đorđe", "Šibenik", "Győr",
    "Brașov", "Erdoğan", "Şişli", "İzmir", "Nguyễn", "Hồ", "Ķekava", "Jūrmala", "Šiauliai", "Ťažký",
]
# fmt: on


def found(text: str, unknown: str) -> list[tuple[str, Kind]]:
    spans = [(place, place + 1) for place, character in enumerate(text) if character in unknown]
    words = unreadable_words(f"# {text}", (2, 2 + len(text)), spans, language="de")
    return [(f"# {text}"[slice(*word.span)], word.kind) for word in words]


@pytest.mark.parametrize(
    ("text", "unknown", "expected"),
    [
        ("Das Haus", "", []),
        ("Das xyz Haus", "y", [("xyz", Kind.UNKNOWN)]),
        ("Das xyz xyz.", "y", [("xyz xyz", Kind.UNKNOWN)]),
        ("xy Haus xy yx.", "y", [("xy", Kind.UNKNOWN), ("xy yx", Kind.UNKNOWN)]),
        ("Das ** Haus *", "*", [("**", Kind.EMOJI), ("*", Kind.EMOJI)]),
        ("Das 猫a猫!", "猫", [("猫", Kind.UNKNOWN), ("猫", Kind.UNKNOWN)]),
        # Of a foreign script, though the vocabulary has its letters.
        ("Das дом Haus", "", [("дом", Kind.UNKNOWN)]),
    ],
)
def test_unreadable_words_are_found(text: str, unknown: str, expected: list[tuple[str, Kind]]) -> None:
    assert found(text, unknown) == expected


@pytest.mark.parametrize("direction", ["de-en", "en-de"])
def test_names_with_letters_that_a_vocabulary_has_but_no_words_with_them_are_kept(direction: str) -> None:
    for name in UNREADABLE:
        text = f"Anna liest {name} und Peter." if direction == "de-en" else f"Anna reads {name} and Peter."
        assert name in translated(text, shipped(direction), PLAIN, str.swapcase).hypotheses[0].text


def test_unreadable_words_take_time_in_proportion_to_the_text() -> None:
    def finds(size: int) -> None:
        assert len(found("看a" * size, "看")) == size

    assert_linear(finds, 1_000)


@pytest.mark.parametrize(
    ("text", "language", "has_none"),
    [
        *(("Привет", "de", True), ("Привет, Anna", "de", False), ("Hallo", "ru", True), ("1 ½", "ru", False)),
        # Japanese is written in several scripts.
        *(("猫", "ja", False), ("Cat", "ja", False), ("Hallo", "de", False), ("Γειά", "uk", True)),
    ],
)
def test_a_text_without_a_letter_of_its_language_is_found(text: str, language: str, has_none: bool) -> None:
    assert has_no_letter_of(text, language) == has_none
