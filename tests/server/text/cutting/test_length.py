"""Units that are too long, on a tokenizer with a token a character."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.ask.fit import FittedUnit, UnitTooLongError, fit
from dragoman_server.text.cut.segment import segment
from dragoman_server.text.mapped import Span, join
from dragoman_server.text.options import LengthPolicy, Segmentation
from dragoman_server.text.read.clean import clean


class CharacterTokenizer:
    """A token a code point; four for "ﷺ", as byte fallback would."""

    def encode_ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [[ord(letter) for letter in text.replace("ﷺ", "####")] for text in texts]


def sentences(text: str) -> list[Span]:
    return segment(text, language="en", mode=Segmentation.SENTENCE)


def fitted(text: str, *, max_tokens: int, policy: LengthPolicy) -> list[FittedUnit]:
    tokenizer = CharacterTokenizer()
    return fit(clean(text), sentences(text), tokenizer=tokenizer, max_tokens=max_tokens, policy=policy)


def pieces(text: str, result: list[FittedUnit]) -> list[str]:
    return [text[slice(*unit.span)] for unit in result]


SPLIT, TRUNCATE = LengthPolicy.SPLIT, LengthPolicy.TRUNCATE
LONG = "It was late, the shop was closed, and we went home."


@pytest.mark.parametrize(
    ("text", "max_tokens", "policy", "expected", "split", "truncated"),
    [
        ("Ten chars. Ten more..", 11, SPLIT, ["Ten chars.", "Ten more.."], False, False),
        (LONG, 24, SPLIT, ["It was late,", "the shop was closed,", "and we went home."], True, False),
        ("Yes. This one is too long.", 9, TRUNCATE, ["Yes.", "This one"], False, True),
        # A part without a letter is no unit, and a sentence of which one part has letters is split, too.
        ("Numbers: " + "12 34 56 78 " * 4 + "end.", 16, SPLIT, ["Numbers:", "78 end."], True, False),
        ("Numbers: 12 34 56 78 90", 16, SPLIT, ["Numbers:"], True, False),
        # Four tokens.
        ("ﷺ", 3, SPLIT, ["##"], False, True),
    ],
    ids=["fits", "clauses", "truncated", "numbers", "one part", "never"],
)
def test_a_long_sentence_is_split_at_its_clauses_or_truncated(
    text: str, max_tokens: int, policy: LengthPolicy, expected: list[str], split: bool, truncated: bool
) -> None:
    result = fitted(text, max_tokens=max_tokens, policy=policy)
    assert ["".join(map(chr, unit.ids)) for unit in result] == expected
    assert ([unit.span for unit in result] != sentences(text)) == split
    assert any(unit.is_truncated for unit in result) == truncated


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
    assert [len(each[0].ids) for each in found.values()] == [10, 9]
    assert [each[0].is_truncated for each in found.values()] == [False, True]


@given(
    # Without what ends a list's bullet, such as "A)" and "[x]", whose letters are in no unit.
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters=")]"), max_size=300).map(
        lambda text: clean(text).text
    ),
    st.integers(6, 40),
)
def test_split_units_fit_and_hold_the_whole_text(text: str, max_tokens: int) -> None:
    result = fitted(text, max_tokens=max_tokens, policy=LengthPolicy.SPLIT)
    assert all(len(unit.ids) < max_tokens for unit in result)
    assert not any(unit.is_truncated for unit in result)
    edges = [0, *(place for unit in result for place in unit.span), len(text)]
    gaps = [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]
    assert join(gaps, pieces(text, result), filler="")[0] == text
    # What no unit holds is taken from the text itself: no letter may be.
    assert [c for c in "".join(pieces(text, result)) if c.isalpha()] == [c for c in text if c.isalpha()]


@pytest.mark.parametrize("text", ["a" * 100_000, "日本" * 50_000, "x\u0301" * 50_000, "ab " * 33_000])
def test_a_giant_is_split_to_the_last_character(text: str) -> None:
    result = fitted(text, max_tokens=128, policy=LengthPolicy.SPLIT)
    assert sum(len(unit.ids) for unit in result) == len("".join(text.split())) + text.count(" ") - (
        len(result) if " " in text else 0
    )
    assert all(len(unit.ids) < 128 for unit in result)
