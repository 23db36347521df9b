"""Files of terms."""

from pathlib import Path

import pytest

from dragoman_server.errors import ServerFileError
from dragoman_server.glossaries import read_glossaries, read_glossary
from dragoman_server.text.find.terms import (
    MAX_OUTPUT_RATIO,
    OUTPUT_SLACK,
    Term,
    TermIndex,
    TermOutputError,
)


def test_a_glossary_translates_between_any_two_of_its_languages(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("de\ten-GB\tfr\nFarbe\tcolour\tcouleur\nHund\t\tchien\n")
    glossary = read_glossary(path)
    index = glossary.index("de", "en")
    assert index is not None
    assert [item.output for item in index.find("Die Farbe des Hundes: Hund")] == ["colour"]
    assert len(index) == 1
    backwards = glossary.index("fr", "de")
    assert backwards is not None
    assert [item.output for item in backwards.find("CHIEN")] == ["HUND"]
    assert glossary.index("de", "es") is None


def test_a_folder_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert read_glossaries(tmp_path / "none") == {}


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
    path = tmp_path / "a.tsv"
    path.write_text(content)
    with pytest.raises(ServerFileError, match=says):
        read_glossary(path)


def test_thousands_of_terms_are_found_in_one_pass(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("de\ten\n" + "".join(f"wort{n}\tword{n}\n" for n in range(20_000)))
    index = read_glossary(path).index("de", "en")
    assert index is not None
    assert [item.output for item in index.find("das wort77 und wort19999, wort20000")] == [
        "word77",
        "word19999",
    ]


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
    path = tmp_path / "a.tsv"
    path.write_text("zh\ten\n苹果\tapple\niPhone\tiPhone\nकिताब\tbook\nHaus\thouse\n")
    index = read_glossary(path).index("zh", "en")
    assert index is not None
    assert [item.output for item in index.find(text)] == found


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
