"""Words of lines, and lines of words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_training.classics.smt.system import (
    JOINER,
    Casing,
    join_words,
    split_words,
)


@given(st.text(alphabet=st.characters(exclude_characters=JOINER)))
def test_words_tell_their_line_up_to_white_space(line: str) -> None:
    assert join_words(split_words(line)) == " ".join(line.split())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Ein Mann, der schläft.", ["Ein", "Mann", "￭,", "der", "schläft", "￭."]),
        ("saftig-grünes", ["saftig", "￭-￭", "grünes"]),
        ("(so) „ja“!", ["(￭", "so", "￭)", "„￭", "ja", "￭“", "￭!"]),
    ],
)
def test_marks_say_where_no_white_space_is(line: str, words: list[str]) -> None:
    assert split_words(line) == words


def test_a_first_word_is_written_as_it_is_within_sentences() -> None:
    casing = Casing.of([["Der", "Mann", "sieht", "der", "Frau"], ["Mann", "Er", "er", "er"]])
    assert casing.within(["Der", "Hund"]) == ["der", "Hund"]
    assert casing.within(["Mann", "Der"]) == ["Mann", "Der"]
    assert casing.within(["Er"]) == ["er"]
    assert casing.within(["Nie"]) == ["Nie"]
    assert casing.within([]) == []
