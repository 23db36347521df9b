"""Terms in inflected forms, at the beginning of sentences, and words that a translation must not have."""

import pytest
from babel import Locale
from tests.server.conftest import RunningServer
from tests.server.text.answering import copies, forgets, shipped, translated
from tests.server.text.test_protection import translate

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.text.find.terms import Term, TermIndex
from dragoman_server.text.options import Protection, TranslationOptions


def inflected(language: str) -> list[tuple[str, str]]:
    """Names of units, each in two forms, by CLDR."""
    patterns = Locale(language)._data["unit_patterns"]
    forms = (each.get("long", {}) for each in patterns.values())
    pairs = {(form["one"], form["other"]) for form in forms if "one" in form and "other" in form}
    names = {tuple(pattern.replace("{0}", "").strip() for pattern in pair) for pair in pairs}
    return sorted((one, other) for one, other in names if one != other and one.isalpha() and other.isalpha())


@pytest.mark.parametrize("language", ["de", "en", "es", "fr", "it", "nl", "pt"])
def test_terms_are_found_in_another_form(language: str) -> None:
    forms = inflected(language)
    assert len(forms) > 20
    found = [
        other
        for one, other in forms
        if list(TermIndex([Term(source=one, target="x")], stemmed_in=language).find(f"({other})"))
    ]
    assert len(found) > 0.85 * len(forms), set(forms)
    assert not [other for one, other in forms if list(TermIndex([Term(source=one, target="x")]).find(other))]


def options(term: tuple[str, str], **protection: bool) -> TranslationOptions:
    stems = "de" if protection.get("is_inflected") else ""
    index = TermIndex(
        [Term(source=term[0], target=term[1])],
        stemmed_in=stems,
        is_as_written=protection.get("is_as_written", False),
    )
    return TranslationOptions(
        beam_size=1, length_penalty=0.0, protection=Protection(finders=(index,), **protection)
    )


@pytest.mark.parametrize(
    ("text", "term", "protection", "output"),
    [
        ("Der Kunde zahlt. Kunden zahlen.", ("Kunde", "client"), {"is_inflected": True}, "Client"),
        ("Lieferschein liegt bei.", ("Lieferschein", "delivery note"), {}, "Delivery note"),
        ("»Lieferschein liegt bei.", ("Lieferschein", "delivery note"), {}, "Delivery note"),
        ("Lieferschein", ("Lieferschein", "delivery note"), {}, "delivery note"),
        ("Lieferschein liegt bei.", ("Lieferschein", "iNote"), {}, "iNote"),
        ("Lieferschein liegt bei.", ("Lieferschein", "note"), {"is_as_written": True}, "note"),
        ("KUNDEN zahlen.", ("Kunden", "clients"), {"is_as_written": True}, "clients"),
    ],
)
def test_a_term_is_written_as_its_place_asks(
    text: str, term: tuple[str, str], protection: dict[str, bool], output: str
) -> None:
    for answer in (forgets, copies):
        assert output in translated(text, shipped(), options(term, **protection), answer).text


def test_a_form_that_the_model_gives_a_term_stands() -> None:
    asked = options(("Kunde", "client"), is_inflected=True)
    found = translated("Die Kunden zahlen.", shipped(), asked, lambda shown: "The clients pay.")
    assert found.text == "The clients pay."
    assert not found.warnings


async def test_options_of_terms_and_forbidden_words_are_read_off_the_wire(running: RunningServer) -> None:
    terms = [pb.Term(source="wort", target="item")]
    protection = pb.Protection(terms=terms, inflected_terms=True, forbidden=["items", "other"])
    (found,) = await translate(running, "ein wortes ist da", protection=protection)
    assert "item" in found.text.split()
    forbidden = [warning for warning in found.warnings if warning.kind == pb.WARNING_KIND_FORBIDDEN_TERM]
    assert [(warning.start, warning.end) for warning in forbidden] == [(0, 17)]
    protection = pb.Protection(terms=terms, terms_as_written=True, forbidden=["items"])
    (found,) = await translate(running, "EIN WORT IST DA", protection=protection)
    assert "item" in found.text
    assert not [warning for warning in found.warnings if warning.kind == pb.WARNING_KIND_FORBIDDEN_TERM]
