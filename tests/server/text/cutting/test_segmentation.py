"""Units of a text, and the white space around them."""

import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman_server.text.ask.fit import halve
from dragoman_server.text.cut.segment import filler_for, segment
from dragoman_server.text.mapped import Span, join
from dragoman_server.text.options import Segmentation

WHITE_SPACE = " \t\n\r\v\f\u00a0\u2009\u2028\u2029\u3000\x85\x1c"
MARKS = ".!?…\"'“”„«»()。！？:;,-–"
TEXTS = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(WHITE_SPACE), st.sampled_from(MARKS))
)
MODES = st.sampled_from(Segmentation)
SENTENCE, LINE = Segmentation.SENTENCE, Segmentation.LINE
LANGUAGES = st.sampled_from(
    ["de", "en", "fr", "es", "it", "ru", "el", "ar", "hi", "ja", "zh", "tr", "xx", "de-AT"]
)


def is_letter(character: str) -> bool:
    return unicodedata.category(character).startswith("L")


def between(text: str, spans: Sequence[Span]) -> list[str]:
    """As CleanedText.between of a text with nothing to leave out."""
    edges = [0, *(place for span in spans for place in span), len(text)]
    return [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]


def units(text: str, language: str = "de", mode: Segmentation = Segmentation.SENTENCE) -> list[str]:
    return [text[start:end] for start, end in segment(text, language=language, mode=mode)]


@given(text=TEXTS, language=LANGUAGES, mode=MODES)
def test_units_hold_all_letters_and_what_stands_between_stays(
    text: str, language: str, mode: Segmentation
) -> None:
    spans = segment(text, language=language, mode=mode)
    found = [text[start:end] for start, end in spans]
    assert list(filter(is_letter, "".join(found))) == list(filter(is_letter, text))
    assert all(any(map(is_letter, unit)) for unit in found)
    assert all(unit == unit.strip() and len(unit.splitlines()) == 1 for unit in found)
    gaps = between(text, spans)
    assert join(gaps, found, filler="") == (text, [start for start, _ in spans])
    joined, offsets = join(gaps, ["x"] * len(spans), filler="")
    assert joined == "x".join(gaps)
    assert all(joined[offset] == "x" for offset in offsets)
    assert not any(map(is_letter, "".join(gaps)))


@given(text=TEXTS)
@example(text="ab。")
def test_halves_are_the_whole_but_for_white_space(text: str) -> None:
    for span in segment(text, language="en", mode=Segmentation.LINE):
        halves = halve(text, span)
        if halves is None:
            assert span[1] - span[0] == 1
        else:
            (start, left_end), (right_start, end) = halves
            assert (start, end) == span
            assert start < left_end <= right_start < end
            assert not text[left_end:right_start].strip()


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("de", "Dr. Müller kam um 3 p.m. an. Er ging.", ["Dr. Müller kam um 3 p.m. an.", "Er ging."]),
        ("de", "Das ist z. B. gut. Am 3. Oktober kam er.", ["Das ist z. B. gut.", "Am 3. Oktober kam er."]),
        ("de", "Das war im 19. Jahrhundert. Gut.", ["Das war im 19. Jahrhundert.", "Gut."]),
        ("de", "Der 2. Weltkrieg und sein 13. Geburtstag.", ["Der 2. Weltkrieg und sein 13. Geburtstag."]),
        ("de", "Er kam um 5. Dann ging er.", ["Er kam um 5.", "Dann ging er."]),
        ("de", "Die Fa. Meier zahlt. Gut.", ["Die Fa. Meier zahlt.", "Gut."]),
        ("en", "Mr. Smith saw the U.S. Senate. It met.", ["Mr. Smith saw the U.S. Senate.", "It met."]),
        ("en", "It costs 3.50 dollars... Really?! Yes.", ["It costs 3.50 dollars...", "Really?!", "Yes."]),
        ("fr", "M. Dupont est là. Il attend Mme. Roux.", ["M. Dupont est là.", "Il attend Mme. Roux."]),
        ("es", "El Sr. García se fue. ¿Qué? ¡No!", ["El Sr. García se fue.", "¿Qué?", "¡No!"]),
        ("fr", "Il dit : « Oui. » Puis il part.", ["Il dit : « Oui. »", "Puis il part."]),
        ("ja", "吾輩は猫である。名前はまだ無い。", ["吾輩は猫である。", "名前はまだ無い。"]),
        ("ja", "「はい。」と言った。次!もう一度。", ["「はい。」と言った。", "次!", "もう一度。"]),
        ("zh", "“走吧。”他说。你累了吗?我用3.5版。", ["“走吧。”他说。", "你累了吗?", "我用3.5版。"]),
        (
            "pl",
            "W 1984 r. Geyer wrócił. Zmarł w 1990 r. Potem",
            ["W 1984 r. Geyer wrócił.", "Zmarł w 1990 r.", "Potem"],
        ),
        (
            "tr",
            "Papa VI. Paul ile 2. Ramses. Dr. Ali geldi.",
            ["Papa VI. Paul ile 2. Ramses.", "Dr. Ali geldi."],
        ),
        ("it", "La Sig.ra Rossi c'è. Nel 400 a.C. Roma", ["La Sig.ra Rossi c'è.", "Nel 400 a.C. Roma"]),
        ("pt", "O Sr. Silva é o No. 1. Ele vem.", ["O Sr. Silva é o No. 1.", "Ele vem."]),
        ("el", "Πού είναι; Δεν ξέρω. Ο κ. Ράλλης ήρθε.", ["Πού είναι;", "Δεν ξέρω.", "Ο κ. Ράλλης ήρθε."]),
        ("hy", "Գնում եմ։ Եկա։", ["Գնում եմ։", "Եկա։"]),
        ("ru", "Проф. Иванов жив. Это ул. Мира.", ["Проф. Иванов жив.", "Это ул. Мира."]),
        ("de-CH", "Dr. Müller kam. Er ging.", ["Dr. Müller kam.", "Er ging."]),
    ],
)
def test_sentences_end_where_the_language_ends_them(language: str, text: str, expected: list[str]) -> None:
    assert units(text, language) == expected


def test_sentences_of_a_long_line_are_those_of_a_short_one() -> None:
    sentences = ["Gut so.", "Dr. Müller kommt am 3. Mai!"] * 1_000
    assert units(" ".join(sentences)) == sentences


@pytest.mark.parametrize("language", ["de", "it"])
def test_space_that_does_not_break_is_no_obstacle(language: str) -> None:
    assert units("BA.\u00a0,(T.\u00a0S.\u00a0/B\u00a0.", language) != []


@pytest.mark.parametrize(
    ("text", "mode", "expected"),
    [
        ("  Eins\r\nzwei \n\n\tdrei.  Vier\u2028fünf", SENTENCE, ["Eins", "zwei", "drei.", "Vier", "fünf"]),
        ("  Eins\r\nzwei \n\n\tdrei.  Vier\u2028fünf", LINE, ["Eins", "zwei", "drei.  Vier", "fünf"]),
        # Comments end outside of sentences.
        (
            "/* Bitte warten. */\n * Hier auch. **/\na */ b",
            SENTENCE,
            ["Bitte warten.", "Hier auch.", "a */ b"],
        ),
        # Cells of a table are apart.
        ("| Name | Alter |\n|------|-------|\n| Anna | 30 |", SENTENCE, ["Name", "Alter", "Anna"]),
        (
            "Eins\tzwei\t\tdrei vier\nBrot || Käse\na|b x |y",
            SENTENCE,
            ["Eins", "zwei", "drei vier", "Brot", "Käse", "a|b x |y"],
        ),
        ("Eins\tzwei | drei", LINE, ["Eins\tzwei | drei"]),
    ],
)
def test_lines_comments_and_cells_are_apart(text: str, mode: Segmentation, expected: list[str]) -> None:
    assert units(text, mode=mode) == expected


@pytest.mark.parametrize("bullet", ["-", "*", "•", "‣", "◦", "▪", "●"])
@pytest.mark.parametrize("before", ["", "  ", "Ja.\n", "Ja.\r\n\t"])
@pytest.mark.parametrize("after", [" ", "\t", "\u00a0 "])
def test_a_bullet_is_kept_before_the_sentences_of_its_line(bullet: str, before: str, after: str) -> None:
    text = f"{before}{bullet}{after}Ich bin da. Du auch.\n{bullet}{after}Wir alle."
    spans = segment(text, language="de", mode=Segmentation.SENTENCE)
    joined, offsets = join(between(text, spans), ["x"] * len(spans), filler=" ")
    kept = before.replace("Ja.", "x")
    assert joined == f"{kept}{bullet}{after}x x\n{bullet}{after}x"
    assert all(joined[offset] == "x" for offset in offsets)
    # There a line is what the model sees, whole.
    assert f"{bullet}{after}Wir alle." in units(text, mode=Segmentation.LINE)


@pytest.mark.parametrize(
    "beginning",
    [
        *("a) ", "(2) ", "(iv) ", "* b) ", "- [12.03.23, 14:05:33] ", "[9:05 PM] ", "9:05 - "),
        *("12.03.23, 14:05 – ", "- [ ] ", "* [x] ", "> > ", ">> ", "## ", "// ", "/** ", "\t* "),
    ],
)
def test_what_begins_a_line_belongs_to_no_sentence_of_it(beginning: str) -> None:
    text = f"Ja.\n{beginning}Ich bin da. Du auch.\n{beginning}Wir alle."
    assert units(text) == ["Ja.", "Ich bin da.", "Du auch.", "Wir alle."]


@pytest.mark.parametrize(
    "text",
    [
        *("– Ja.", "Bitte) ja.", "ab) ja", "[Ja] nein.", "#Ja", "/x ja", ":) Ja.", "(ja) nein"),
        *("#1 ja", "9:05 - 10:00 Uhr", "5 - ja", "[y] ja", "— Ja.", "-5 Grad.", "-Ja.", "*Ja*"),
        *("Ja - nein.", "Heiß * kalt.", "-- Ja.", "−5 Grad."),
    ],
)
def test_a_dash_a_minus_and_an_asterisk_are_no_bullets(text: str) -> None:
    assert units(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        *("12345", "---", "😀", "3,50 €", "½ – Ⅳ", "١٢٣", "\ue000", "\u0301", "\x00\x01", "\ufeff\u200b"),
        *("", " ", "\n", "\r\n \t\u3000\n"),
    ],
)
@pytest.mark.parametrize("mode", Segmentation)
def test_what_holds_no_letter_is_no_unit(text: str, mode: Segmentation) -> None:
    assert units(text, mode=mode) == []
    assert units(f"Ja.\n{text}\nNein.", mode=mode) == ["Ja.", "Nein."]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("de", "1. Brot\n2. Käse", "1. x\n2. x"),
        ("de", "1.Brot", "1.x"),
        ("zh", "1．面包", "1．x"),
        ("hi", "हाँ।१२।नहीं।", "x१२।x"),
        ("ja", "はい。😀いいえ。😀", "x x😀"),
    ],
)
def test_what_holds_no_letter_stays_where_it_touches_units(language: str, text: str, expected: str) -> None:
    spans = segment(text, language=language, mode=Segmentation.SENTENCE)
    assert join(between(text, spans), ["x"] * len(spans), filler=" ")[0] == expected


def test_white_space_stays_around_what_replaces_the_units() -> None:
    text = "\n Eins.  Zwei.\r\n\r\nDrei.\n"
    spans = segment(text, language="de", mode=Segmentation.SENTENCE)
    joined, offsets = join(between(text, spans), ["One.", "Twenty-two.", "Three."], filler=" ")
    assert joined == "\n One.  Twenty-two.\r\n\r\nThree.\n"
    assert [joined[offset:].split(".")[0] for offset in offsets] == ["One", "Twenty-two", "Three"]


def test_sentences_that_touch_are_separated_for_a_language_with_spaces() -> None:
    text = "你好。再见。"
    spans = segment(text, language="zh", mode=Segmentation.SENTENCE)
    assert join(between(text, spans), ["Hello.", "Bye."], filler=filler_for("en")) == ("Hello. Bye.", [0, 7])
    assert (
        join(between(text, spans), ["こんにちは。", "じゃあ。"], filler=filler_for("ja"))[0]
        == "こんにちは。じゃあ。"
    )


@pytest.mark.parametrize(
    ("text", "left", "right"),
    [
        ("one two, three four five", "one two,", "three four five"),
        ("one two three four", "one two", "three four"),
        ("a verylongwordthatholdsnospaceatall", "a", "verylongwordthatholdsnospaceatall"),
        ("今日は天気がいい、散歩に行こう", "今日は天気がいい、", "散歩に行こう"),
        ("abcdef", "abc", "def"),
        ("abe\u0301\u0301cd", "abe\u0301\u0301", "cd"),
        ("x👩\u200d👩y", "x👩\u200d👩", "y"),
        ("\u0301\u0301\u0301\u0301", "\u0301\u0301", "\u0301\u0301"),
    ],
)
def test_a_unit_is_halved_where_it_hurts_least(text: str, left: str, right: str) -> None:
    halves = halve(text, (0, len(text)))
    assert halves is not None
    assert [text[start:end] for start, end in halves] == [left, right]


@pytest.mark.parametrize("tone", "🏻🏼🏽🏾🏿")
def test_an_emoji_keeps_its_skin_tone_where_a_unit_is_halved(tone: str) -> None:
    text = f"ab👍{tone}cd"
    assert halve(text, (0, len(text))) == ((0, 4), (4, 6))


@pytest.mark.parametrize("language", ["de", "DE-at", "de_AT", "deu", "ger"])
def test_a_language_is_known_by_every_code_of_it(language: str) -> None:
    text = "Am 19. Mai kam Frl. Meier. Sie blieb."
    assert units(text, language) == ["Am 19. Mai kam Frl. Meier.", "Sie blieb."]
    for code in ("zh", "zh_Hans", "zho", "cmn", "jpn", "ja-JP"):
        assert filler_for(code) == "", "sentences touch"
