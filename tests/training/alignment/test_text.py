"""What is a word to an aligner."""

import pytest

from dragoman_training.alignment.bitext import WordRule


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Das Haus, 3,5 m.", ["das", "haus", ",", "3", ",", "5", "m", "."]),
        ("我用iPhone拍照。", ["我", "用", "iphone", "拍", "照", "。"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("यह किताब है।", ["यह", "किताब", "है", "।"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("cafe\u0301 كِتَاب", ["cafe\u0301", "كِتَاب"]),
        ("한국어 책", ["한국어", "책"]),
    ],
)
def test_words_stand_apart_in_any_script(line: str, expected: list[str]) -> None:
    rule = WordRule(tokenize=True)
    assert rule.normalize(line) == expected
    assert [line[start:end].lower() for start, end in rule.spans(line)] == expected
    assert WordRule().normalize(line) == line.lower().split()


@pytest.mark.parametrize("character", ["\u00a0", "\u202f", "\u2028", "\u3000", "\x85", "\x0b"])
def test_nothing_but_spaces_and_tabs_parts_words(character: str) -> None:
    """Positions are those of other programs, which know no other spaces."""
    line = f" 10{character}km\tweit  weg "
    assert WordRule().split(line) == [f"10{character}km", "weit", "weg"]
    assert [line[slice(*span)] for span in WordRule().spans(line)] == WordRule().split(line)
