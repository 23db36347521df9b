"""Brackets, quotation marks, marks at the end, speakers and capitals, whatever the model answers."""

import ctypes
import ctypes.util
import re
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from dragoman_bundle import Bundle
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import assert_linear
from tests.server.text.answering import (
    ALIGNED,
    ANSWERS,
    HTML,
    Answer,
    forgets,
    says_nothing,
    shipped,
    translated,
)

from dragoman_server.text.find.pairs import quotes
from dragoman_server.text.judge.edges import finished
from dragoman_server.text.options import Protection
from dragoman_server.text.stages import prepare
from dragoman_server.text.translated import WarningKind


def opens(shown: str) -> str:
    """Has signs that stand alone."""
    return f"({shown} gut) „so ‚gut ["


ANSWERING = pytest.mark.parametrize("answer", [*ANSWERS, opens], ids=lambda answer: answer.__name__)
DIRECTIONS = pytest.mark.parametrize("direction", ["de-en", "en-de"])
BRACKETS = [
    (opening, unicodedata.lookup(name.replace("LEFT", "RIGHT")))
    for opening in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(opening) == "Ps" and unicodedata.mirrored(opening)
    if "LEFT" in (name := unicodedata.name(opening)) and not re.search("ARC|CORNER", name)
]
"""Unicode's pairs, by their names, but for corners, which quote, and arcs, whose names tell their shape."""
QUOTES = {
    "de-en": [("„", "“"), ("»", "«"), ("“", "”"), ('"', '"')],
    "en-de": [("“", "”"), ("«", "»"), ('"', '"')],
}
WITHIN = {"de-en": [("‚", "‘"), ("›", "‹")], "en-de": [("‘", "’")]}
WORDS = st.lists(
    st.sampled_from(
        ["Hund", "Katze", "rot", "ist", "gut", "%d", "heute", "house", "red", "very", "%s", "42"]
    ),
    min_size=1,
    max_size=4,
).map(lambda words: " ".join(("gut", *words)))
LANGUAGES = [
    "af", "ar", "az", "be", "bg", "bn", "bs", "ca", "cs", "da", "de", "el", "en", "es", "et", "eu", "fa",
    "fi", "fr", "gl", "he", "hi", "hr", "hu", "hy", "id", "is", "it", "ja", "ka", "kk", "ko", "lt", "lv",
    "mk", "nb", "nl", "pl", "pt", "pt_PT", "ro", "ru", "fr_CH", "sk", "sl", "so", "sq", "sr", "sv", "sw",
    "ta", "th", "tk", "tr", "uk", "ur", "uz", "vi", "yue", "zh", "zh_Hant", "zu",
]  # fmt: skip
COMMON_WORDS = Path(__file__).parents[3] / "benchmarks/scenarios/shipped/words.de-en.tsv"
NOUNS = re.findall(r"^[A-ZÄÖÜ]\w+(?=\t)", COMMON_WORDS.read_text(), re.MULTILINE)
ENDS = ["", ".", "!", "?", "?!", "!!!", ":", "…", " …", "...", ";", " –", ","]


def answered(languages: tuple[str, str], shown: str, answer: str) -> str:
    """An answer with the first letter and the end of what was shown."""
    tokenizer = shipped("-".join(languages) if set(languages) == {"de", "en"} else "de-en").target_tokenizer

    def count_pieces(words: Sequence[str]) -> list[int]:
        return list(map(len, tokenizer.encode_ids(words)))

    return finished(answer, shown, languages=languages, count_pieces=count_pieces)


def own(direction: str, sign: str, place: int) -> str:
    """The target's sign for one of the source."""
    if sign in "\"'":
        return sign
    if any(sign in pair for pair in BRACKETS):
        return unicodedata.normalize("NFKC", sign) if sign in "（）［］｛｝" else sign
    return quotes(direction[3:])[place]


@DIRECTIONS
@ANSWERING
@given(data=st.data(), words=WORDS, end=st.sampled_from(ENDS))
def test_what_stands_around_a_sentence_stays_around_it(
    direction: str, answer: Answer, data: st.DataObject, words: str, end: str
) -> None:
    opening, closing = data.draw(st.sampled_from([*BRACKETS, *QUOTES[direction]]))
    inner = data.draw(st.sampled_from([("", ""), *WITHIN[direction]]))
    speaker = data.draw(st.sampled_from(["", "ANNA: ", "FRAU MÜLLER: ", "– "]))
    found = translated(
        f"{speaker}{opening}{inner[0]}{words}{end}{inner[1]}{closing}", shipped(direction), ALIGNED, answer
    ).text
    first = own(direction, opening, 0) + (own(direction, inner[0], 2) if inner[0] else "")
    last = (own(direction, inner[1], 3) if inner[1] else "") + own(direction, closing, 1)
    assert found.startswith(speaker + first), found
    if answer is not says_nothing:
        assert found.endswith(end + last), found


@DIRECTIONS
@ANSWERING
@given(data=st.data(), before=WORDS, words=WORDS, behind=WORDS)
def test_what_stands_within_a_sentence_stays_around_something(
    direction: str, answer: Answer, data: st.DataObject, before: str, words: str, behind: str
) -> None:
    pairs = [*BRACKETS, *QUOTES[direction], ("'", "'")]
    chosen = data.draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=3, unique=True))
    text = before
    for opening, closing in chosen:
        text += f" {opening}{words}{closing} {behind}"
    found = translated(f"{text}.", shipped(direction), ALIGNED, answer)
    signs = re.compile(f"[{re.escape(''.join(map(''.join, [*pairs, ('“‘„', '’”‚')])))}]")
    written = ["".join(own(direction, sign, place) for place, sign in enumerate(pair)) for pair in chosen]
    # Each is closed before the next one opens.
    assert sorted(re.findall("..", "".join(signs.findall(found.text)))) == sorted(written), found.text
    if answer is not says_nothing:
        assert all(re.search(r"\w", part) for part in signs.split(found.text)[1::2]), found.text
    for link in found.hypotheses[0].alignments:
        assert 0 <= link.source[0] < link.source[1] <= len(text) + 1
        assert 0 <= link.target[0] < link.target[1] <= len(found.text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Three signs of one quotation are in two sentences, and in two lines.
        ("„Es ist. Es ist.“", "“It is good. It is good.”"),
        ("„Es ist.\nEs ist.“", "“It is good.\nIt is good.”"),
        ("(Es ist. Es ist.)", "(It is good. It is good.)"),
        ("»Es ist?«, »Es ist!«", "“It is good?”, “It is good!”"),
        ("Er sagt: „Es ist.“", "It is good: “It is good.”"),
        ("Er sagt: „Es ist“!", "It is good: “It is good”!"),
        ("[Laute Musik] Es ist.", "[It is good] It is good."),
        ("(seufzt) ANNA: Es ist.", "(it is good) ANNA: It is good."),
        # No name of a speaker.
        ("ACHTUNG: Es ist offen.", "It is good."),
        ("ES IST: ES IST OFFEN.", "IT IS GOOD."),
        # Parts of words, and a list's letters.
        ("Kund(inn)en sind da.", "It is good."),
        ("Hier ist a) und b) da.", "It is good."),
        ("Hallo du :-)", "It is good :-)"),
        ("<b>„Es ist!“</b> (<i>Es ist</i>)", "<b>“It is good!”</b> (<i>It is good</i>)"),
    ],
)
def test_what_frames_a_sentence(bundle: Bundle, text: str, expected: str) -> None:
    options = HTML if text.startswith("<") else ALIGNED
    assert translated(text, bundle, options, forgets).text == expected


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        # A quotation ends behind the mark that it ended behind.
        ("»Das ist«, »ist gut.«", lambda shown: re.sub('[„“”"]', "", shown), "“Das ist”, “ist gut.”"),
        # What stands in brackets gets no mark that it had not.
        ("Tom (das ist gut) ist da.", lambda shown: shown.replace(")", "?)"), "[^?]*"),
        # Pairs that stood apart do not come to stand in each other.
        (
            "(Das ist) (gut).",
            lambda shown: "(gut (gut) gut)" if "(" in shown else "gut",
            r"((?!\([^)]*\().)*",
        ),
    ],
    ids=["quotation", "mark", "apart"],
)
def test_signs_stay_where_they_stood(bundle: Bundle, text: str, answer: Answer, expected: str) -> None:
    assert re.fullmatch(expected, translated(text, bundle, ALIGNED, answer).text)


def test_a_sentence_that_is_translated_around_a_bracket_is_told(bundle: Bundle) -> None:
    text = "Der Hund (rot) ist da."
    found = translated(text, bundle, ALIGNED, forgets, is_blind=True)
    assert found.text == "It is good (it is good) it is good."
    spans = [warning.span for warning in found.warnings if warning.kind is WarningKind.SPAN_PUT_BACK]
    assert spans == [(9, 10), (13, 14)]


def test_nothing_of_it_is_done_where_protection_is_off(bundle: Bundle) -> None:
    options = replace(ALIGNED, protection=Protection(is_automatic=False))
    for text in ("ANNA: „Ja“!", "(Ja) ist da", "– Ja:"):
        assert translated(text, bundle, options, forgets).text == "it is good"


@pytest.mark.parametrize(
    ("languages", "shown", "answer", "expected"),
    [
        (("de", "en"), "Neue Nachricht", "New message.", "New message"),
        (("de", "en"), "Um fünf", "At 5 p.m.", "At 5 p.m."),
        (("de", "en"), "Komm her!", "Come here.", "Come here."),
        (("de", "en"), "Alle Rechte vorbehalten!", "Keep all rights.", "Keep all rights!"),
        (("en", "de"), "Come here!", "Komm her.", "Komm her!"),
        (("de", "en"), "Gefallen!", "It fell.", "It fell!"),
        (("de", "en"), "»Ja«, »ist gut.«", '"Yes", "it is".', '"Yes", "it is."'),
        (("de", "en"), "Er sagte (ja.)", '"Yes".', '"Yes".'),
        (("de", "en"), "Er sagte „Nein“.", "He said “no.”", "He said “no.”"),
        (("de", "en"), "Er mag (Brot)!", "He likes (bread)", "He likes (bread)!"),
        (("de", "zh"), "Er ist da!", "他在这里", "他在这里！"),
        (("de", "zh"), "Er ist da.", "他在这里。", "他在这里。"),
        (("zh", "de"), "他在这里吗？", "Ist er da.", "Ist er da?"),
        (("el", "de"), "Είναι εδώ;", "Ist er da.", "Ist er da?"),
        (("de", "el"), "Ist er da?", "Είναι εδώ.", "Είναι εδώ;"),
        (("de", "th"), "Er ist da.", "เขาอยู่ที่นี่", "เขาอยู่ที่นี่"),
        (("de", "hi"), "Er ist da.", "वह यहाँ है", "वह यहाँ है।"),
        (("de", "en"), "die Leute", "The people.", "the people"),
        (("de", "en"), "wenn Tom", "Tom came.", "Tom came"),
        (("de", "en"), "weil ich da bin", "I am here", "I am here"),
        (("de", "en"), "NATO ist da", "iPhone is here", "iPhone is here"),
        (("de", "en"), "Hund", "dog.", "dog"),
        (("de", "en"), "Er ist da.", "he is here.", "He is here."),
        (("en", "de"), "dog", "Hund.", "Hund"),
        (("en", "de"), "Guten Morgen?", "Guten? Morgen!", "Guten Morgen?"),
        (("en", "de"), "the dog", "Der Hund", "der Hund"),
        (("en", "de"), "dogs and cats", "Hunde und Katzen", "Hunde und Katzen"),
    ],
)
def test_an_answer_begins_and_ends_as_its_source(
    languages: tuple[str, str], shown: str, answer: str, expected: str
) -> None:
    assert answered(languages, shown, answer) == expected


def test_a_german_noun_keeps_its_capital_behind_a_word_in_small_letters() -> None:
    assert len(NOUNS) > 200
    for noun in NOUNS:
        for shown, answer in (("dog", noun), ("the dog", f"{noun} und mehr")):
            is_also_an_adverb = noun == "Morgen" and answer != noun
            assert is_also_an_adverb or answered(("en", "de"), shown, answer) == answer


def test_quotation_marks_are_those_that_icu_has() -> None:
    name = ctypes.util.find_library("icui18n")
    if name is None:
        pytest.skip("no ICU is installed")
    library, version = ctypes.CDLL(name), name.rpartition(".so.")[2].split(".")[0]
    opened = getattr(library, f"ulocdata_open_{version}")
    opened.restype = ctypes.c_void_p
    read = getattr(library, f"ulocdata_getDelimiter_{version}")
    read.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    for language in LANGUAGES:
        error, buffer = ctypes.c_int(0), (ctypes.c_uint16 * 8)()
        data = opened(language.encode(), ctypes.byref(error))
        marks = ""
        for kind in range(4):
            length = read(data, kind, buffer, len(buffer), ctypes.byref(error))
            marks += "".join(map(chr, buffer[:length]))
        assert quotes(language) == marks, language


def test_words_before_a_quotation_are_not_lost(bundle: Bundle) -> None:
    found = translated("Er sagt „ja“.", bundle, ALIGNED, lambda shown: "“yes”." if "„" in shown else shown)
    assert found.text == "Er sagt “ja”."


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        *(
            (part, "")
            for part in ("(", ")", "(a", "a) ", "„", '"', ' "a', "“a ", "« ", " »", '("', "(a)", "„a“ ")
        ),
        *((part, "") for part in ("'a ", "ANNA: ", "… ")),
        ("(", ")"),
    ],
)
def test_they_are_found_in_time_in_proportion_to_the_text(bundle: Bundle, opening: str, closing: str) -> None:
    def prepares(size: int) -> None:
        prepare(f"Ja {opening * size}ja{closing * size}.", bundle, ALIGNED, None)

    assert_linear(prepares, 1_000 // len(opening))
