"""Units that are too long, on a tokenizer with a token a character."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.cut.fit import FittedUnits, UnitTooLongError, fit
from dragoman_server.text.cut.segment import segment
from dragoman_server.text.mapped import join
from dragoman_server.text.options import LengthPolicy, Segmentation
from dragoman_server.text.read.clean import clean


class CharacterTokenizer:
    """A token a code point; four for "ﷺ", as byte fallback would."""

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [[ord(letter) for letter in text.replace("ﷺ", "####")] for text in texts]


def fitted(text: str, *, max_tokens: int, policy: LengthPolicy) -> FittedUnits:
    spans = segment(text, language="en", mode=Segmentation.SENTENCE)
    return fit(clean(text), spans, tokenizer=CharacterTokenizer(), max_tokens=max_tokens, policy=policy)


def pieces(text: str, result: FittedUnits) -> list[str]:
    return [text[slice(*unit.span)] for unit in result.units]


def test_what_fits_is_left_alone() -> None:
    result = fitted("Ten chars. Ten more..", max_tokens=11, policy=LengthPolicy.SPLIT)
    assert [len(unit.ids) for unit in result.units] == [10, 10]
    assert not result.split
    assert not result.truncated


def test_a_long_sentence_is_split_at_its_clauses() -> None:
    text = "It was late, the shop was closed, and we went home."
    result = fitted(text, max_tokens=24, policy=LengthPolicy.SPLIT)
    assert pieces(text, result) == ["It was late,", "the shop was closed,", "and we went home."]
    assert result.split
    assert not result.truncated


def test_a_long_sentence_is_refused_where_asked() -> None:
    with pytest.raises(UnitTooLongError, match=r"characters 5 to 36 has 32 tokens.*takes 20"):
        fitted("Yes. This one, however, is too long.", max_tokens=20, policy=LengthPolicy.REJECT)


def test_a_sentence_without_an_end_may_be_a_token_longer() -> None:
    """As those of models whose sources have none."""
    text = "Ten chars."
    found = {
        num_ends: fit(
            clean(text),
            [(0, 10)],
            tokenizer=CharacterTokenizer(),
            max_tokens=10,
            num_ends=num_ends,
            policy=LengthPolicy.TRUNCATE,
        )
        for num_ends in (0, 1)
    }
    assert [len(each.units[0].ids) for each in found.values()] == [10, 9]
    assert [each.truncated for each in found.values()] == [False, True]


def test_a_long_sentence_is_truncated_where_asked() -> None:
    text = "Yes. This one is too long."
    result = fitted(text, max_tokens=9, policy=LengthPolicy.TRUNCATE)
    assert ["".join(map(chr, unit.ids)) for unit in result.units] == ["Yes.", "This one"]
    assert result.truncated
    assert not result.split


def test_a_character_that_never_fits_is_truncated() -> None:
    result = fitted("ﷺ", max_tokens=3, policy=LengthPolicy.SPLIT)
    assert [len(unit.ids) for unit in result.units] == [2]
    assert result.truncated


def test_a_part_without_a_letter_is_no_unit() -> None:
    text = "Numbers: " + "12 34 56 78 " * 4 + "end."
    result = fitted(text, max_tokens=16, policy=LengthPolicy.SPLIT)
    assert result.split
    assert pieces(text, result)[0].startswith("Numbers:")
    assert pieces(text, result)[-1].endswith("end.")
    assert len(result.units) == 2


def test_a_sentence_of_which_one_part_has_letters_is_split_too() -> None:
    result = fitted("Numbers: 12 34 56 78 90", max_tokens=16, policy=LengthPolicy.SPLIT)
    assert len(result.units) == 1
    assert result.split


@given(
    # Without what ends a list's bullet, such as "A)" and "[x]", whose letters are in no unit.
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters=")]"), max_size=300).map(
        lambda text: clean(text).text
    ),
    st.integers(6, 40),
)
def test_split_units_fit_and_hold_the_whole_text(text: str, max_tokens: int) -> None:
    result = fitted(text, max_tokens=max_tokens, policy=LengthPolicy.SPLIT)
    assert all(len(unit.ids) < max_tokens for unit in result.units)
    assert not result.truncated
    edges = [0, *(place for unit in result.units for place in unit.span), len(text)]
    gaps = [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
    assert join(gaps, pieces(text, result), filler="")[0] == text
    # What no unit holds is taken from the text itself: no letter may be.
    assert [c for c in "".join(pieces(text, result)) if c.isalpha()] == [c for c in text if c.isalpha()]


@pytest.mark.parametrize("text", ["a" * 100_000, "日本" * 50_000, "x\u0301" * 50_000, "ab " * 33_000])
def test_a_giant_is_split_to_the_last_character(text: str) -> None:
    result = fitted(text, max_tokens=128, policy=LengthPolicy.SPLIT)
    assert sum(len(unit.ids) for unit in result.units) == len("".join(text.split())) + text.count(" ") - (
        len(result.units) if " " in text else 0
    )
    assert all(len(unit.ids) < 128 for unit in result.units)
