"""What of a text is cut and tokenized, and the way back to the caller's."""

import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

import pytest
from dragoman_bundle import Bundle, open_bundle
from hypothesis import given
from hypothesis import strategies as st
from tests.server.text.answering import PLAIN
from tests.shipped import shipped_bundle

from dragoman_server.text.ask.fit import UnitTooLongError
from dragoman_server.text.options import LengthPolicy
from dragoman_server.text.passage import Passage
from dragoman_server.text.read.clean import clean, for_tokenizer
from dragoman_server.text.stages import prepare

SHIPPED = shipped_bundle("de-en")
HIDDEN = [
    *"\0\x01\x1b\x7f\u00ad\u034f\u061c\u115f\u17b4\u180b\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c",
    *"\u202d\u202e\u2060\u2061\u2064\u2066\u2067\u2068\u2069\u206a\u3164\ufe00\ufe0e\ufe0f\ufeff\uffa0",
    *"\U0001d173\U000e0001\U000e0041\U000e0100",
]
# Formats that are seen, as the sign of a year, or that stand about what is seen: annotations.
SHOWN_FORMATS = {*range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, *range(0xFFF9, 0xFFFC)}
FIRST_OTHER_PLANE = 0x10000
EMOJI = ["❤️", "👩‍💻", "👩🏽‍💻", "🏳️‍🌈", "👁️‍🗨️", "1️⃣", "#️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🏴‍☠️", "☺︎", "👨‍👩‍👧"]
WORDS = [
    "Guten", "Morgen.", "Grüße", "an", "Anna,", "z.", "B.", "am", "3.", "Mai!", "(Köln)", "naïve", "Ελλάδα.",
]  # fmt: skip
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
ANY = st.text(st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(HIDDEN)))
INSERTED = st.lists(st.tuples(st.integers(0, 200), st.sampled_from(HIDDEN)), max_size=20)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return open_bundle(SHIPPED)


def insert(text: str, inserted: Sequence[tuple[int, str]]) -> str:
    for place, character in inserted:
        text = text[: place % (len(text) + 1)] + character + text[place % (len(text) + 1) :]
    return text


def tokens(document: Passage) -> list[Sequence[int]]:
    return [sentence.source for sentence in document.sentences]


@given(text=SENTENCES, inserted=INSERTED)
def test_what_shows_nothing_is_left_out_anywhere(text: str, inserted: Sequence[tuple[int, str]]) -> None:
    assert clean(insert(text, inserted)).text == text


@given(text=SENTENCES, inserted=INSERTED)
def test_it_changes_no_unit_or_token(bundle: Bundle, text: str, inserted: Sequence[tuple[int, str]]) -> None:
    plain = prepare(text, bundle, PLAIN, deadline=None)
    document = prepare(insert(text, inserted), bundle, PLAIN, deadline=None)
    assert tokens(document) == tokens(plain)
    assert [unit.span for unit in document.units] == [unit.span for unit in plain.units]
    assert document.source.origin == insert(text, inserted)
    # "3." and the like between units are as the caller wrote them.
    assert [clean(gap).text for gap in document.gaps] == list(plain.gaps)


@given(text=ANY)
def test_offsets_are_monotone_and_lead_to_what_stands_there(text: str) -> None:
    cleaned = clean(text)
    assert len(cleaned.text) == len(for_tokenizer(cleaned.text)) == len(cleaned.starts) == len(cleaned.ends)
    assert list(cleaned.starts) == sorted(cleaned.starts)
    assert list(cleaned.ends) == sorted(cleaned.ends)
    for place, character in enumerate(cleaned.text):
        start, end = cleaned.back((place, place + 1))
        assert 0 <= start < end <= len(text)
        assert character in clean(text[start:end]).text or text[start:end] == character


@given(text=ANY)
def test_what_is_clean_stays(text: str) -> None:
    once = clean(text).text
    again = clean(once)
    assert again.text == once
    assert [again.back((place, place + 1)) for place in range(len(once))] == [
        (place, place + 1) for place in range(len(once))
    ]


@given(text=st.text(st.sampled_from("aäÄéñçøßąłőžďấ각한글аёйΆώ .,-")), inserted=INSERTED)
def test_letters_and_marks_are_composed_in_place(text: str, inserted: Sequence[tuple[int, str]]) -> None:
    written = unicodedata.normalize("NFD", text)
    cleaned = clean(written)
    assert cleaned.text == text
    for place, letter in enumerate(text):
        start, end = cleaned.back((place, place + 1))
        assert written[start:end] == unicodedata.normalize("NFD", letter)
    assert clean(insert(written, inserted)).text == text


def test_many_marks_on_a_letter_are_composed_in_runs() -> None:
    # To order them all at once takes the square of their number.
    text = "a" + "\u0301\u0323" * 20_000
    cleaned = clean(text)
    assert cleaned.text.startswith("ạ")
    assert len(text) - 1 <= len(cleaned.text) + 1 <= len(text) + 1


def test_every_format_of_unicode_is_left_out_or_known_to_be_seen() -> None:
    formats = [code for code in range(sys.maxunicode) if unicodedata.category(chr(code)) == "Cf"]
    seen = {code for code in formats if clean(chr(code)).text}
    # Number signs, hieroglyphs and shorthand of other planes are seen as well.
    assert {code for code in seen if code < FIRST_OTHER_PLANE} == SHOWN_FORMATS
    assert all(
        unicodedata.name(chr(code)).startswith(("KAITHI", "EGYPTIAN", "SHORTHAND"))
        for code in seen - SHOWN_FORMATS
    )


@pytest.mark.parametrize("emoji", EMOJI)
def test_emoji_stay_whole(emoji: str) -> None:
    text = f"Hallo {emoji}, {emoji}{emoji} Anna"
    assert clean(text).text == text
    # What belongs to none of their characters does not.
    assert clean("Hallo\ufe0f \u200d" + "\u00ad".join(emoji) + "\u200d Anna").text == f"Hallo {emoji} Anna"


@pytest.mark.parametrize("text", ["می‌خواهم کتاب‌ها را بخوانم", "ශ්‍රී ලංකා", "क्‍ष and क्‌ष", "അവന്‍ വന്നു", "র‍্যাব"])
def test_scripts_that_are_written_with_joiners_keep_them(text: str) -> None:
    assert clean(text).text == text
    assert clean("\u00ad".join(text)).text == text


@pytest.mark.parametrize(
    "text", ["Auf\u200clage", "\u200cمن", "من\u200c", "من \u200c من", "\u200dक", "e\u200d❤"]
)
def test_joiners_elsewhere_are_left_out(text: str) -> None:
    assert clean(text).text == text.replace("\u200c", "").replace("\u200d", "")


@pytest.mark.parametrize("hyphen", "‐‑‒−˗﹣")
def test_what_looks_like_a_hyphen_is_tokenized_as_one(bundle: Bundle, hyphen: str) -> None:
    written = prepare(f"Es sind {hyphen}5 Grad. E{hyphen}Mail.", bundle, PLAIN, deadline=None)
    plain = prepare("Es sind -5 Grad. E-Mail.", bundle, PLAIN, deadline=None)
    assert tokens(written) == tokens(plain)
    assert bundle.source_tokenizer.unk_id not in {token for sentence in tokens(plain) for token in sentence}


def test_a_minus_sign_begins_no_item_of_a_list(bundle: Bundle) -> None:
    document = prepare("− fünf Grad", bundle, PLAIN, deadline=None)
    assert document.gaps == ("", "")


@pytest.mark.parametrize(
    ("text", "gaps"),
    [
        ("\u2068Anna\u2069 kommt.\u200b \u200b\u2067Peter geht.\u2069", ("", " ", "")),
        ("\ufeffAnna kommt.\r\n\u200b\r\nPeter geht.", ("", "\r\n\r\n", "")),
        # What has no letter is not translated, and stays as it was.
        ("Anna kommt.\n−5\u00ad0\u200e\nPeter geht.", ("", "\n−5\u00ad0\u200e\n", "")),
        ("\u200e1.\u200e Anna kommt.", ("\u200e1.\u200e ", "")),
        ("Anna kommt.\n❤️\nPeter geht.", ("", "\n❤️\n", "")),
    ],
)
def test_what_stands_between_units_is_as_written(bundle: Bundle, text: str, gaps: tuple[str, ...]) -> None:
    assert prepare(text, bundle, PLAIN, deadline=None).gaps == gaps


@pytest.mark.parametrize("text", ["\u00ad", "\ufeff\u200b ", "\u200e+49 30 123\u200e", "\u3164", "−5", "\0"])
def test_a_text_of_which_no_letter_is_left_has_no_units(bundle: Bundle, text: str) -> None:
    document = prepare(text, bundle, PLAIN, deadline=None)
    assert document.units == ()
    assert document.source.origin == text


def test_a_sentence_that_is_too_long_is_told_where_the_caller_wrote_it(bundle: Bundle) -> None:
    options = replace(PLAIN, length_policy=LengthPolicy.REJECT)
    text = "Gu\u00adten Mor\u00adgen. " + "Ha\u00adus " * 5_000
    with pytest.raises(UnitTooLongError, match=rf"^the sentence at characters 16 to {len(text) - 1} has "):
        prepare(text, bundle, options, deadline=None)


@pytest.mark.parametrize("policy", [LengthPolicy.SPLIT, LengthPolicy.TRUNCATE])
def test_what_is_too_long_is_split_or_truncated_as_without_it(bundle: Bundle, policy: LengthPolicy) -> None:
    options = replace(PLAIN, length_policy=policy)
    text = "Das Haus ist groß, und der Garten ist schön, " * 40 + "sagt er."
    plain = prepare(text, bundle, options, deadline=None)
    document = prepare("\u00ad".join(text), bundle, options, deadline=None)
    assert [unit.span for unit in document.units] == [unit.span for unit in plain.units]
    assert document.gaps == plain.gaps
    assert (document.split, document.truncated) == (plain.split, plain.truncated)
    assert plain.split or plain.truncated
