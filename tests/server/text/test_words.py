"""Where the words of a text are, in any script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.mapped import Span
from dragoman_server.text.words import goes_on, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Das Haus.", ["Das", "Haus", "."]),
        ('Er sagte: „Komm!"', ["Er", "sagte", ":", "„", "Komm", '!"']),
        ("z.B. don't und/oder 3,5%", ["z.B", ".", "don't", "und/oder", "3,5", "%"]),
        ("  ... ", ["..."]),
        ("cafe\u0301 हिन्दी।", ["cafe\u0301", "हिन्दी", "।"]),
        ("", []),
        ("😀 ja\u00a0👍🏽", ["😀", "ja", "👍🏽"]),
        ("我用iPhone拍照，好吗？", ["我", "用", "iPhone", "拍", "照", "，", "好", "吗", "？"]),
        ("ที่นี่ 3.5 ครับ", ["ที่", "นี่", "3.5", "ค", "รั", "บ"]),
        ("葛\u302a城 ក\u17ddក", ["葛\u302a", "城", "ក\u17dd", "ក"]),
        ("東京タワー(333m)", ["東", "京", "タ", "ワ", "ー", "(", "333m", ")"]),
    ],
)
def test_words_are_runs_without_their_punctuation(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in words(text)] == expected


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        ("我喜欢猫。", [(0, 1), (1, 3), (3, 5)], ["我", "喜欢", "猫", "。"]),
        ("我喜欢猫。", [(0, 2), (2, 5)], ["我喜", "欢猫", "。"]),
        ("Das Haus", [(0, 2), (2, 8)], ["Das", "Haus"]),
        # Of a text that was cut: what has no piece is one word.
        ("我喜欢猫", [(0, 1)], ["我", "喜欢猫"]),
    ],
)
def test_without_spaces_a_models_pieces_are_words(text: str, pieces: list[Span], expected: list[str]) -> None:
    assert [text[start:end] for start, end in words(text, pieces)] == expected


@given(st.text() | st.text("我猫ー ที่a.,1"), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))))
def test_words_hold_all_that_is_not_white_space(text: str, pieces: list[Span]) -> None:
    assert "".join(text[start:end] for start, end in words(text, pieces)) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("ein Haus_1.", [3, 4, 10]),
        ("爱猫", [1]),
        ("买iPhone", [1]),
        ("किताब", []),
        ("ที่นี่", [3]),
        ("cafe\u0301s", []),
    ],
)
def test_a_word_ends_where_it_does_not_go_on(text: str, ends: list[int]) -> None:
    assert [position for position in range(1, len(text)) if not goes_on(text, position)] == ends
