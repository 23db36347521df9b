"""Terms: files of them, their forms and places, and words that a translation must not have."""

from pathlib import Path

import pytest
from babel import Locale
from tests.server.conftest import RunningServer
from tests.server.text.answering import copies, forgets, shipped, translated
from tests.server.text.test_protection import translate

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.errors import ServerFileError
from dragoman_server.glossaries import Glossary, read_glossaries, read_glossary
from dragoman_server.text.find.terms import MAX_OUTPUT_RATIO, OUTPUT_SLACK, Term, TermIndex, TermOutputError
from dragoman_server.text.options import Protection, TranslationOptions


def test_a_glossary_translates_between_any_two_of_its_languages(tmp_path: Path) -> None:
    glossary = glossary_of(tmp_path, "de\ten-GB\tfr\nFarbe\tcolour\tcouleur\nHund\t\tchien\n")
    assert outputs(glossary, ("de", "en"), "Die Farbe des Hundes: Hund") == ["colour"]
    assert len(glossary.index("de", "en") or []) == 1
    assert outputs(glossary, ("fr", "de"), "CHIEN") == ["HUND"]
    assert glossary.index("de", "es") is None
    assert read_glossaries(tmp_path / "none") == {}


def glossary_of(folder: Path, content: str) -> Glossary:
    path = folder / "a.tsv"
    path.write_text(content)
    return read_glossary(path)


def outputs(glossary: Glossary, languages: tuple[str, str], text: str) -> list[str | None]:
    index = glossary.index(*languages)
    assert index is not None
    return [item.output for item in index.find(text)]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "line 1: must be two or more languages"),
        ("de\n", "line 1"),
        ("de\tde\n", "line 1"),
        ("de\ten\na\n", "line 2: 1 columns"),
        ("de\ten\na\tb\tc\n", "line 2: 3 columns"),
        ("de\ten\n\tb\n", "line 2: has a term in fewer than two"),
        ("de\ten\na\t\n", "line 2: has a term in fewer than two"),
        ("de\ten\na\tb\nA\tc\n", "line 3: 'A' stands in line 2 already"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(ServerFileError, match=says):
        glossary_of(tmp_path, content)


def test_thousands_of_terms_are_found_in_one_pass(tmp_path: Path) -> None:
    glossary = glossary_of(tmp_path, "de\ten\n" + "".join(f"wort{n}\tword{n}\n" for n in range(20_000)))
    found = outputs(glossary, ("de", "en"), "das wort77 und wort19999, wort20000")
    assert found == ["word77", "word19999"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("我买了苹果手机。", ["apple"]),
        ("苹果", ["apple"]),
        ("买iPhone", ["iPhone"]),
        ("यह किताब है", ["book"]),
        # Its letters begin another word, whose vowel is a mark on the last of them.
        ("किताबें", []),
        ("Haus im Hausboot", ["house"]),
        # Its small letters are more than the large ones.
        ("İİİ Haus", ["house"]),
    ],
)
def test_a_term_is_found_in_any_script(tmp_path: Path, text: str, found: list[str]) -> None:
    content = "zh\ten\n苹果\tapple\niPhone\tiPhone\nकिताब\tbook\nHaus\thouse\n"
    assert outputs(glossary_of(tmp_path, content), ("zh", "en"), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # The longest that has whole words, from left to right.
        ("a b c", [(0, 3)]),
        ("a b cd", [(0, 3)]),
        ("a bc", [(0, 1)]),
        ("ja a b c d ja", [(3, 6), (7, 10)]),
        ("a a,a", [(0, 1), (2, 3), (4, 5)]),
        # One that stays comes first, in the letters it is given in.
        ("b C", [(2, 3)]),
        ("b c", [(0, 3)]),
    ],
)
def test_of_terms_that_overlap_one_is_taken(text: str, found: list[tuple[int, int]]) -> None:
    sources = ("a", "a b", "b c", "c d", "a b c d e")
    index = TermIndex(
        [*(Term(source=source, target="x") for source in sources), Term(source="C", target=None)]
    )
    assert sorted(item.span for item in index.find(text)) == found


def test_translations_of_terms_may_be_as_long_as_the_limit_and_no_longer() -> None:
    limit = MAX_OUTPUT_RATIO * len("Hund") + OUTPUT_SLACK
    longest, longer = (TermIndex([Term(source="Hund", target="d" * size)]) for size in (limit, limit + 1))
    assert [len(item.output or "") for item in longest.find("Hund")] == [limit]
    with pytest.raises(TermOutputError):
        list(longer.find("Hund"))


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
