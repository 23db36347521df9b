"""Messages of ICU and of Fluent: texts are translated, and ICU itself and Mozilla's parser read them."""

import html
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from babel import Locale
from dragoman_bundle import Bundle
from fluent.syntax import FluentParser, ast
from hypothesis import given
from hypothesis import strategies as st
from icu4py.messageformat import MessageFormat
from tests.server.text.answering import ALIGNED, ANSWERING, HTML, Answer, copies, forgets, shipped, translated

from dragoman_server.text.options import TranslationOptions
from dragoman_server.text.translated import TranslatedText

FORMATS = pytest.mark.parametrize("options", [ALIGNED, HTML], ids=["plain", "html"])
VALUES = {"x": "QQX", "y": "QQY", "g": "male", "h": "x"}
"""What the arguments are that stand alone or that are chosen by; numbers are `n` and `m`."""
REAL_FILES = Path(__file__).parents[4] / "shared/data"

WORD = st.sampled_from(["Hunde", "schlafen", "im", "Garten", "und", "Haus", "it''s", "l'art", "'{ja}'", "''"])
ARGUMENT = st.sampled_from(["{x}", "{y}", "{ x }", "{n, number}", "{m, number, integer}"])


def _joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(parts, min_size=1, max_size=4).map(" ".join)


def _choices(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Choices with texts of these, in which "#" may stand."""
    numbered = _joined(texts | st.just("#"))
    offset = st.sampled_from(["", "", " offset:1"])
    exact = st.just("") | numbered.map(" =0 {{{}}}".format)
    plural = st.builds(
        "{{{}, plural,{}{} one {{{}}} other {{{}}}}}".format,
        *(st.sampled_from("nm"), offset, exact, numbered, numbered),
    )
    ordinal = st.builds("{{{}, selectordinal, other{{{}}}}}".format, st.sampled_from("nm"), numbered)
    select = st.builds(
        "{{{}, select, male {{{}}}\n other {{{}}}}}".format, st.sampled_from("gh"), texts, texts
    )
    return plural | plural | select | ordinal


TEXTS = st.recursive(
    _joined(WORD | ARGUMENT), lambda texts: _joined(WORD | ARGUMENT | _choices(texts)), max_leaves=8
)
MESSAGES = st.builds("{} {} {}".format, _joined(WORD), _choices(TEXTS), TEXTS)


def between(source: str, target: str) -> Bundle:
    manifest = replace(shipped().manifest, source_language=source, target_language=target)
    return replace(shipped(), manifest=manifest)


def shown(message: str, language: str, number: int) -> str:
    """What ICU makes of a message."""
    values: Mapping[str, object] = {**VALUES, "n": number, "m": 9 - number}
    return " ".join(MessageFormat(message, language).format(values).split())


def put_in(text: str) -> Counter[str]:
    """The values that were put in."""
    return Counter(re.findall(r"QQ[XY]|\d+", text))


@FORMATS
@given(message=MESSAGES)
def test_what_a_model_copies_is_shown_as_before(options: TranslationOptions, message: str) -> None:
    given = html.escape(message, quote=False) if options is HTML else message
    found = translated(given, between("en", "de"), options, copies)
    answer = html.unescape(found.text) if options is HTML else found.text
    for number in (0, 1, 2, 7):
        assert shown(answer, "de", number) == shown(message, "en", number), answer


@ANSWERING
@given(message=MESSAGES)
def test_whatever_a_model_answers_a_message_shows_the_same_values(answer: Answer, message: str) -> None:
    found = translated(message, between("en", "de"), ALIGNED, answer)
    for number in (0, 1, 5):
        assert put_in(shown(found.text, "de", number)) == put_in(shown(message, "en", number)), found.text
    for hypothesis in found.hypotheses:
        for link in hypothesis.alignments:
            assert 0 <= link.source[0] < link.source[1] <= len(message)
            assert 0 <= link.target[0] < link.target[1] <= len(hypothesis.text)


@pytest.mark.parametrize("language", ["de", "fr", "pl", "ru", "ar", "ja", "cy", "lv", "en"])
def test_a_choice_by_number_has_the_categories_of_the_target(language: str) -> None:
    bundle = between("en" if language != "en" else "ja", language)
    given = "{n, plural, one {# Hund} other {# Hunde}}" if language != "en" else "{n, plural, other {# Hund}}"
    found = translated(given, bundle, ALIGNED, copies)
    rule = Locale(language).plural_form
    assert sorted(re.findall(r"(\w+) \{", found.text)) == sorted({*rule.tags, "other"})
    for number in range(30):
        expected = "Hunde" if language != "en" and rule(number) != "one" else "Hund"
        assert shown(found.text, language, number) == shown(f"{{n, number}} {expected}", language, number)


@pytest.mark.parametrize(("language", "categories"), [("en", 4), ("de", 1), ("fr", 2), ("it", 2), ("cy", 6)])
def test_a_choice_by_rank_has_those_of_ranks(language: str, categories: int) -> None:
    found = translated("Am {n, selectordinal, other {#}} da.", between("pl", language), ALIGNED, copies)
    assert found.text.count("{Am # da.}") == categories


@pytest.mark.parametrize("language", ["fr", "ru", "ja", "lv"])
def test_a_text_of_one_thing_in_words_is_shown_for_one_thing_alone(language: str) -> None:
    given = "Es {n, plural, one {ist ein Hund} other {sind # Hunde}} da."
    found = translated(given, between("en", language), ALIGNED, copies)
    for number in (0, 1, 2, 21, 101):
        assert shown(found.text, language, number) == shown(given, "en", number)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            "Ja. Wir haben {n, plural, one {# Hund} other {# Hunde}} im Haus. Gut.",
            "Ja. {n, plural, one {Wir haben # Hund im Haus.} other {Wir haben # Hunde im Haus.}} Gut.",
        ),
        # What a number sign is around a choice, it is within.
        (
            "Haus # {n, plural, other {Hund}} da",
            "{n, plural, one {Haus '#' Hund da} other {Haus '#' Hund da}}",
        ),
        (
            "{n, plural, one {ja} other {# Hunde und {m, select, other {#}}}}",
            "{n, plural, one {ja} other {{m, select, other {{n, number} Hunde und #}}}}",
        ),
        (
            "{n, plural, one {ja} other {# und {m, plural, one {# Ja} other {#}}}}",
            "{n, plural, one {ja} other {{m, plural, one {{n, number} und # Ja} other {{n, number} und #}}}}",
        ),
        # A choice by the same argument is made once.
        (
            "{g, select, a {Er} other {Sie}} und {g, select, a {sein} other {ihr}} Hund",
            "{g, select, a {Er und sein Hund} other {Sie und ihr Hund}}",
        ),
        ("{n,plural,=0{Haus}=1{Hund}other{Hunde}}", "{n,plural,=0{Haus}=1{Hund}one{Hund}other{Hunde}}"),
        (
            "Hunde '{n, plural, other {Hund}}'. Und {n, plural, =1 {Hund} one {Hund} other {Ja}}.",
            "Hunde '{n, plural, other {Hund}}'. {n, plural, =1 {Und Hund.} one {Und Hund.} other {Und Ja.}}",
        ),
        ("`{n, plural, other {Hunde}}` und gut", "`{n, plural, other {Hunde}}` und gut"),
    ],
)
def test_a_sentence_is_whole_in_each_text_of_its_choice(given: str, expected: str) -> None:
    assert translated(given, between("pl", "de"), ALIGNED, copies).text == expected


def test_tags_are_in_the_translation_once_each() -> None:
    given = "Wir <b>haben</b> {n, plural, one {<i>#</i> Hund} other {# Hunde}} im <code>x</code>."
    assert translated(given, between("en", "pl"), HTML, copies).text == given


@pytest.mark.parametrize(
    "choice",
    [
        "{n, plural, one {# Hund}}",
        "{n, plural, one {# Hund} one {#} other {#}}",
        "{n, plural, eins {# Hund} other {#}}",
        "{n, select, =1 {Hund} other {#}}",
        "{n, plural, one {# Hund} other}",
        "{n, choice, 0#Hunde|1#Hund}",
        "{n, plural, " + "=1{}" * 3 + "other {Hund}}",
        "{g, select, " + "".join(f"k{number} {{Hund}} " for number in range(70)) + "other {Hund}}",
        "{n, plural, other {" + "Hund " * 2500 + "}}",
    ],
)
@pytest.mark.parametrize("answer", [copies, forgets])
def test_a_choice_that_is_none_stays_and_is_told(choice: str, answer: Answer) -> None:
    found = translated(f"Das ist {choice} da.", between("en", "pl"), ALIGNED, answer)
    assert found.text.count(choice) == 1
    told = [(warning.kind.value, warning.span) for warning in found.warnings]
    assert ("untranslated", (8, 8 + len(choice))) in told


def test_choices_within_choices_come_to_a_bounded_number_of_texts() -> None:
    choice = "{g0, select, a {Ja} other {Nein}}"
    given = " ".join(choice.replace("0", str(number)) for number in range(20))
    found = translated(given, between("fr", "de"), ALIGNED, copies)
    assert found.num_units <= 64
    assert "untranslated" in {warning.kind.value for warning in found.warnings}
    values = {f"g{number}": "a" for number in range(20)}
    assert MessageFormat(found.text, "de").format(values) == " ".join(["Ja"] * 20)
    nested = "{n, plural, other {" * 100 + "Hund" + "}}" * 100
    assert shown(translated(nested, between("en", "ar"), ALIGNED, copies).text, "ar", 3) == "Hund"


def test_what_the_caller_protects_is_kept_within_a_choice() -> None:
    given = "{n, plural, one {# Hund} other {# Hunde}}"
    start = given.index("Hunde")
    found = translated(given, between("en", "de"), ALIGNED, forgets, [(start, start + 5)])
    assert found.text.count("Hunde") == 1
    assert translated(given, between("en", "de"), ALIGNED, forgets, [(0, len(given))]).text == given


def _fluent(text: str) -> ast.Pattern:
    indented = text.replace("\n", "\n    ")
    [message] = FluentParser().parse(f"name =\n    {indented}\n").body
    assert isinstance(message, ast.Message), text
    assert message.value is not None
    return message.value


@ANSWERING
@pytest.mark.parametrize("language", ["de", "pl", "ja"])
def test_choices_of_fluent_have_the_texts_of_the_target(answer: Answer, language: str) -> None:
    given = (
        "Wir haben { $n ->\n    [0] nichts\n    [one] { $n } Hund\n   *[other] { $n } Hunde\n} in { -haus }: "
        '{ DATETIME($d, month: "long") } { "{" }.'
    )
    found = translated(given, between("en", language), ALIGNED, answer)
    [choice] = [
        element.expression for element in _fluent(found.text).elements if isinstance(element, ast.Placeable)
    ]
    assert isinstance(choice, ast.SelectExpression)
    keys = [getattr(variant.key, "name", None) or variant.key.value for variant in choice.variants]
    assert sorted(keys) == sorted({"0", "other", *Locale(language).plural_form.tags})
    assert [variant.default for variant in choice.variants].count(True) == 1
    for variant in choice.variants:
        placeables = [each for each in variant.value.elements if isinstance(each, ast.Placeable)]
        num_brands = sum(isinstance(each.expression, ast.TermReference) for each in placeables)
        assert (num_brands, len(placeables)) == (1, 3 if variant.key.__class__ is ast.NumberLiteral else 4)


@pytest.mark.skipif(not REAL_FILES.is_dir(), reason="no real files here")
@pytest.mark.parametrize("source", ["en", "de"])
def test_messages_of_programs_are_read_by_icu_in_the_target(source: str) -> None:
    target = "de" if source == "en" else "en"
    lines = (REAL_FILES / f"more/ui-android/en-de.{source}").read_text().splitlines()
    # A few go on in other lines.
    messages = [line for line in lines if re.match(r"\{\w+, ?plural.*\}$", line)]
    assert messages
    for message in messages:
        found: TranslatedText = translated(message, shipped(f"{source}-{target}"), ALIGNED, copies)
        name = message[1 : message.index(",")]
        for number in (0, 1, 2, 5):
            values = dict.fromkeys(re.findall(r"\{(\w+)[},]", message), "QQX") | {name: number}
            before = MessageFormat(message, source).format(values)
            after = MessageFormat(found.text, target).format(values)
            assert put_in(after) == put_in(before)
