"""Word alignments, drawn: the demo's, too, which a first visitor can check."""

import pytest

import demo
from dragoman import Alignment, Client, FinishReason, Hypothesis
from dragoman.cli.align_texts import alignment_picture, word_spans


def hypothesis(text, links):
    alignments = tuple(
        Alignment(
            source_start=source[0],
            source_end=source[1],
            target_start=target[0],
            target_end=target[1],
            weight=weight,
        )
        for source, target, weight in links
    )
    return Hypothesis(
        text=text, score=-0.5, log_probability=-1.0, finish_reason=FinishReason.STOP, alignments=alignments
    )


GOOD_MORNING = hypothesis(
    "Good morning!",
    [((0, 5), (0, 4), 0.8), ((6, 12), (0, 4), 0.1), ((6, 12), (5, 12), 0.6), ((12, 13), (12, 13), 0.3)],
)


def draw(source, drawn, **options):
    shown = {"width": 80, "ascii_only": False} | options
    picture = alignment_picture(source, drawn.text, drawn.alignments, **shown)
    return [line.rstrip() for line in picture.plain.splitlines()]


def test_source_words_stand_across_and_target_words_down():
    assert draw("Guten Morgen!", GOOD_MORNING) == [
        "         Guten",
        "         │  Morgen",
        "         │  │  !",
        "Good     ██ ░░",
        "morning     ▓▓",
        "!              ▒▒",
        "██ 75%+  ▓▓ 50%+  ▒▒ 25%+  ░░ less  of a word's attention",
    ]


def test_ascii_is_legible_wide_characters_keep_the_columns_and_no_links_are_no_error():
    lines = draw("Guten Morgen!", GOOD_MORNING, ascii_only=True)
    assert "\n".join(lines).isascii()
    assert lines[3:5] == ["Good     ## ..", "morning     ++"]
    drawn = hypothesis("日本 a", [((0, 1), (0, 2), 0.9), ((2, 3), (3, 4), 0.9)])
    assert draw("x y", drawn)[2:4] == ["日本  ██", "a        ██"]
    assert draw("", hypothesis("", []))[-1].endswith("attention")


def test_without_room_every_link_gets_a_line():
    assert draw("Guten Morgen!", GOOD_MORNING, width=15) == [
        "Guten -> Good (0.80)",
        "Morgen -> Good (0.10)",
        "Morgen -> morning (0.60)",
        "! -> ! (0.30)",
    ]


@pytest.mark.parametrize(
    ("text", "linked", "words"),
    [
        ("a b c", {(2, 3)}, ["a", "b", "c"]),
        ("a b c", set(), ["a", "b", "c"]),
        ("Hallo, Welt", {(0, 5), (7, 11)}, ["Hallo", ",", "Welt"]),
        ("  ", set(), []),
        ("Ja, geht's Klavier.", set(), ["Ja", ",", "geht's", "Klavier", "."]),
        ("(_nie_) नमस्ते", set(), ["(_", "nie", "_)", "नमस्ते"]),
        ("ein cafe\u0301!", set(), ["ein", "cafe\u0301", "!"]),
        ("wie -- so", set(), ["wie", "--", "so"]),
    ],
)
def test_words_without_a_link_are_drawn_too(text, linked, words):
    assert [text[start:end] for start, end in word_spans(text, linked)] == words


RIGHT = {
    ("Meine", "My"),
    ("Schwester", "sister"),
    ("verkauft", "sold"),
    ("das", "the"),
    ("Haus", "house"),
    (".", "."),
}


def test_the_links_that_the_demo_draws_are_right():
    text = demo.PICTURED
    with demo.running_server(demo.MODELS) as address, Client(address) as client:
        (translation,) = client.translate([text], source="de", target="en", alignments=True)
    drawn = {
        (text[link.source_start : link.source_end], translation.text[link.target_start : link.target_end])
        for link in translation.hypotheses[0].alignments
    }
    assert drawn == RIGHT
