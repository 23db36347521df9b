"""Where the words that stand for protected spans are found again."""

import pytest

from dragoman_server.text.ask.masks import masks_for, occurrences
from dragoman_server.text.marks import Kind, Mark


@pytest.mark.parametrize(
    ("mask", "answer", "expected"),
    [
        ("Boston", "Ich war in Boston.", [(11, 17)]),
        ("Boston", "Boston und Boston", [(0, 6), (11, 17)]),
        ("Boston", "Bostons Bostoner", []),
        ("Boston", "我在Boston工作", [(2, 8)]),
        ("Boston", "Boston에서 살아요", [(0, 6)]),
        ("Boston", "他在Bostonian", []),
        ("37", "37 Äpfel, 137 und 37,5 und 3-37.", [(0, 2)]),
        ("37", "有37个苹果。", [(1, 3)]),
        ("37", "第137个", []),
    ],
)
def test_a_mask_is_a_word_of_its_own(mask: str, answer: str, expected: list[tuple[int, int]]) -> None:
    assert occurrences(mask, answer) == expected


@pytest.mark.parametrize("sentence", ["", "Ich bin in London.", "ICH BIN IN LONDON.", "londoner"])
def test_a_word_of_the_sentence_however_it_is_written_is_no_mask(sentence: str) -> None:
    item = Mark(span=(0, 1), kind=Kind.PLACEHOLDER)
    first, second = masks_for([item, item], ["{a}", "{b}"], sentence, variant=0) or []
    assert first.casefold() not in sentence.casefold()
    assert (first == "London") == (not sentence)
    assert first != second
