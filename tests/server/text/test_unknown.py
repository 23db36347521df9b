"""Words that a vocabulary lacks."""

import pytest
from tests.growth import assert_linear
from tests.server.text.answering import shipped, translated

from dragoman_server.text.find.unknown import has_no_letter_of, unreadable_words
from dragoman_server.text.marks import Kind
from dragoman_server.text.options import TranslationOptions

# fmt: off
NAMES = [
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
def test_words_with_unknown_characters_are_found(
    text: str, unknown: str, expected: list[tuple[str, Kind]]
) -> None:
    assert found(text, unknown) == expected


@pytest.mark.parametrize("direction", ["de-en", "en-de"])
def test_names_with_letters_that_a_vocabulary_has_but_no_words_with_them_are_kept(direction: str) -> None:
    options = TranslationOptions(beam_size=1, length_penalty=1.0)
    for name in NAMES:
        text = f"Anna liest {name} und Peter." if direction == "de-en" else f"Anna reads {name} and Peter."
        assert name in translated(text, shipped(direction), options, str.swapcase).hypotheses[0].text


def test_it_takes_time_in_proportion_to_the_text() -> None:
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
