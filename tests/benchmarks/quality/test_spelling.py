"""Tokenised text as people write it."""

import pytest

from benchmarks.alignment.spelling import spell


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("mr president , i agree ( partly ) .", "mr president, i agree (partly)."),
        ("qu’ il n’ y a que l’ âne ; « bien » !", "qu’il n’y a que l’âne; «bien»!"),
        ("it 's the miller 's , isn 't it ?", "it's the miller's, isn't it?"),
        (", draftsman", ", draftsman"),
    ],
)
def test_punctuation_stands_as_people_write_it(words: str, line: str) -> None:
    [spelled] = spell([words.split()], None)
    assert spelled.text == line
    assert [spelled.text[start:].split(maxsplit=1)[0][:1] for start in spelled.starts] == [
        word[0] for word in words.split()
    ]


def test_words_have_their_usual_capitals() -> None:
    corpus = ["Der Hund sah den Hund.", "Ein hund.", "Herr Müller isst Eis."]
    [spelled] = spell([["der", "hund", "isst", "eis", "."]], corpus)
    assert spelled.text == "Der Hund isst Eis."


def test_a_range_of_characters_touches_words() -> None:
    [spelled] = spell([["l’", "âne", "dort", "."]], None)
    assert spelled.text == "l’âne dort."
    assert list(spelled.words((0, 5))) == [0, 1]
    assert list(spelled.words((6, 10))) == [2]
    assert list(spelled.words((10, 11))) == [3]
