"""Where the words of a text are, in any script, and word alignments, worked out by hand."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_server.text.align.links import align
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


@pytest.mark.parametrize(
    ("source", "source_spans", "target", "target_spans", "attention_UT", "expected"),
    [
        # A model that looks nowhere links nothing, nor does one that looks at nothing but the end.
        (
            "Das Haus.",
            [(0, 3), (3, 8), (8, 9)],
            "The house.",
            [(0, 3), (3, 9), (9, 10)],
            np.zeros((4, 4)),
            [],
        ),
        ("a", [(0, 1)], "x", [(0, 1)], [[0.0, 1.0]], []),
        *(
            (source, [(0, 0)], target, [(0, 0)], np.ones((2, 2)), [])
            for source, target in (("", "x"), ("x", ""), ("", ""))
        ),
        # Each target word has its strongest link.
        (
            "Das Haus.",
            [(0, 3), (3, 8), (8, 9)],
            "The house.",
            # "The", " ho", "use", "."
            [(0, 3), (3, 6), (6, 9), (9, 10)],
            [
                # Das  Haus  .    end
                [0.6, 0.1, 0.1, 0.2],  # The: 0.6, 0.1, 0.1 of 0.8
                [0.2, 0.7, 0.1, 0.0],  # ho
                [0.0, 0.5, 0.1, 0.4],  # use; house: 0.1, 0.6, 0.1 of 0.8
                [0.0, 0.2, 0.3, 0.5],  # .: 0, 0.2, 0.3 of 0.5
                [0.0, 0.0, 0.0, 1.0],  # end
            ],
            [("Das", "The", 0.75), ("Haus", "house", 0.75), (".", ".", 0.6), ("Haus", ".", 0.4)],
        ),
        # Attention on the tokens of a source word adds up: "ein", " Apfel", "baum".
        (
            "ein Apfelbaum",
            [(0, 3), (3, 9), (9, 13)],
            "tree",
            [(0, 4)],
            [[0.4, 0.3, 0.3]],
            [("Apfelbaum", "tree", 0.6), ("ein", "tree", 0.4)],
        ),
        # A token over two words is shared by length, and one without a row is not looked at.
        ("auf dem", [(0, 7)], "on", [(0, 2)], [[1.0]], [("auf", "on", 0.5), ("dem", "on", 0.5)]),
        (
            "a b",
            [(0, 1), (1, 3)],
            "x yz w",
            [(0, 1), (1, 3), (3, 4), (4, 6)],
            [[1, 0, 0], [0, 1, 0]],
            [("a", "x", 1.0), ("b", "yz", 1.0)],
        ),
        # Without spaces pieces are linked; the last one is of a character and a full stop.
        (
            "我喜欢猫。",
            [(0, 1), (1, 3), (3, 5)],
            "I like cats.",
            [(0, 1), (1, 6), (6, 11), (11, 12)],
            [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0.1, 0.9, 0], [0, 0, 1, 0]],
            [
                *(("我", "I", 1.0), ("喜欢", "like", 1.0), ("猫", "cats", 0.45), ("。", "cats", 0.45)),
                *(("猫", ".", 0.5), ("。", ".", 0.5)),
            ],
        ),
    ],
)
def test_words_are_linked_by_attention(
    source: str,
    source_spans: list[Span],
    target: str,
    target_spans: list[Span],
    attention_UT: list[list[float]],
    expected: list[tuple[str, str, float]],
) -> None:
    alignments = align(
        source_text=source,
        source_spans=source_spans,
        target_text=target,
        target_spans=target_spans,
        attention_UT=np.array(attention_UT, np.float32),
    )
    links = [
        (source[slice(*each.source)], target[slice(*each.target)], round(each.weight, 4))
        for each in alignments
    ]
    assert links == expected


def test_weak_links_are_left_out_but_never_the_strongest() -> None:
    source = "a b c d e f g h i j"
    attention_UT = np.full((1, 10), 0.1, np.float32)
    attention_UT[0, 3] = 0.11
    alignments = align(
        source_text=source,
        source_spans=[(place, place + 1) for place in range(0, 20, 2)],
        target_text="x",
        target_spans=[(0, 1)],
        attention_UT=attention_UT,
    )
    assert [source[slice(*link.source)] for link in alignments] == ["d"]


def test_text_behind_the_last_token_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def recorded(text: str, pieces: Sequence[Span]) -> Iterator[Span]:
        read.append(text)
        return words(text, pieces)

    monkeypatch.setattr("dragoman_server.text.align.links.words", recorded)
    found, whole = (
        align(
            source_text=source,
            source_spans=[(0, 2), (2, 5)],
            target_text="yes good",
            target_spans=[(0, 3), (3, 8)],
            attention_UT=np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]]),
        )
        for source in ("Ja gut" + " und so weiter" * 20_000, "Ja gut")
    )
    assert found == whole
    assert max(map(len, read)) == len("yes good")
