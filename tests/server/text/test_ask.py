"""Parts of a sentence that is asked around what is kept: the words that stand for it, and the seams."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.growth import assert_linear

from dragoman_server.text.ask.masks import masks_for, occurrences
from dragoman_server.text.marks import Kind, Mark
from dragoman_server.text.seams import Seams, seams_between


@pytest.mark.parametrize(
    ("languages", "gaps", "texts", "expected"),
    [
        (("zh", "en"), ["", "汤姆", ""], ["I know", "today."], "I know 汤姆 today."),
        (("zh", "en"), ["", "Tom。"], ["I know"], "I know Tom."),
        (("ja", "de"), ["Tom、", "，Li（", ""], ["er ist da", "gut"], "Tom, er ist da, Li (gut"),
        (("zh", "en"), ["", " Tom "], ["I know"], "I know Tom"),
        (("zh", "en"), ["", "{name}", ""], ["I know", "today."], "I know {name} today."),
        (("zh", "en"), ["", "%d", ""], ["I have", "files."], "I have %d files."),
        (("zh", "en"), ["", "`ls`", ""], ["run", "now."], "run `ls` now."),
        (("zh", "en"), ["", ".env", ":smile:"], ["see", "it"], "see .env it :smile:"),
        (("th", "en"), ["", "「Tom」", ""], ["I know", "today."], "I know 「Tom」 today."),
        (("zh", "en"), ["（Tom）", ""], ["is happy."], "(Tom) is happy."),
        (("zh", "en"), ["", "（Tom）。"], ["He is here"], "He is here (Tom)."),
        (("zh", "en"), ["", "Tom！？"], ["is it"], "is it Tom!?"),
        (("zh", "en"), ["", "“Tom。”", ""], ["He says", "and goes."], "He says “Tom.” and goes."),
        (("zh", "en"), ["“", "，”Li。"], ["Go"], "“Go,” Li."),
        (("zh", "en"), ["", '，"Tom"。'], ["He says"], 'He says, "Tom".'),
        (("zh", "en"), ["", "，Tom），", ""], ["(He", "goes."], "(He, Tom), goes."),
        (("zh", "en"), ["", "", ""], ["Go", "now."], "Go now."),
        (("en", "zh"), ["老王 ", ""], ["很快乐。"], "老王很快乐。"),
        (("en", "zh"), ["", " 老王."], ["我知道"], "我知道老王。"),
        (("en", "ja"), ["", " Tom, ", "!"], ["私は", "です"], "私は Tom、です！"),
        (("en", "th"), ["", " Tom."], ["ฉันรู้จัก"], "ฉันรู้จัก Tom."),
        (("en", "zh"), ["", " TOM: 12:30, 1.5 (2,500)."], ["狗"], "狗 TOM：12:30，1.5（2,500）。"),
        (("en", "zh"), ["TOM ... ", " :-)"], ["很好"], "TOM ...很好:-)"),
        (("en", "ja"), ["Tom, Li (3): ", " (4)!"], ["犬"], "Tom、Li（3）：犬（4）！"),
    ],
)
def test_spaces_and_punctuation_are_those_of_the_translation(
    languages: tuple[str, str], gaps: list[str], texts: list[str], expected: str
) -> None:
    seams = seams_between(*languages)
    assert seams is not None
    assert _joined(seams, gaps, texts) == expected


@pytest.mark.parametrize(
    ("languages", "gaps", "texts", "expected"),
    [
        (("zh", "en"), ["", "<code>TOM</code>", ""], ["see", "now."], "see <code>TOM</code> now."),
        (("zh", "en"), ["", "Tom</b>。"], ["<b>I know"], "<b>I know Tom</b>."),
        (("zh", "en"), ["", "Tom。</b>"], ["<b>I know"], "<b>I know Tom.</b>"),
        (("zh", "en"), ["", "；&nbsp;", ""], ["go", "now."], "go;&nbsp;now."),
        (
            ("zh", "en"),
            ["", "，<a id='a，b。>'>Li</a>（", ""],
            ["go", "now"],
            "go, <a id='a，b。>'>Li</a> (now",
        ),
        (("zh", "en"), ["", "Tom。<br>", ""], ["go", "now"], "go Tom. <br>now"),
        (
            ("en", "zh"),
            ["", " <a id='a, b.'>老王</a>, ", "."],
            ["看", "走"],
            "看<a id='a, b.'>老王</a>，走。",
        ),
    ],
)
def test_tags_stay(languages: tuple[str, str], gaps: list[str], texts: list[str], expected: str) -> None:
    seams = seams_between(*languages)
    assert seams is not None
    assert _joined(replace(seams, is_markup=True), gaps, texts) == expected


@given(
    st.lists(
        st.sampled_from(
            ["<b>", "</b>", '<a x="a, b.，>">', "<!-- a, -->", "&nbsp;", *'.,;:!?()。，：！？（）" a1我']
        )
    )
)
@pytest.mark.parametrize("target", ["en", "zh"])
@pytest.mark.parametrize("is_markup", [False, True])
def test_only_marks_and_spaces_change_outside_tags(target: str, is_markup: bool, parts: list[str]) -> None:
    text = "".join(parts)
    written = Seams(target, is_markup).write(text)
    assert _without_spaces(written) == _without_spaces(text)
    if is_markup:
        tags = [part for part in parts if part.startswith("<")]
        assert re.findall(r'<!--.*?-->|<a x=".*?">|<[^>]*>', written) == tags


def _without_spaces(text: str) -> str:
    return text.translate(str.maketrans("。，、；：！？（）", ".,,;:!?()", " "))


@pytest.mark.parametrize("unit", ["<!-- ", "<a ", '<a"', "<a'\"", "<", "&", "，", "（", "<a \"'>", "a,"])
def test_it_takes_time_in_proportion_to_the_text(unit: str) -> None:
    for target in ("en", "zh"):
        write = Seams(target, is_markup=True).write
        assert_linear(lambda size, write=write: write(unit * size), 10_000 // len(unit))


def test_a_picture_that_is_part_of_a_tag_stays() -> None:
    tag = f'<img alt="a, b." src="data:image/png;base64,{"A" * 50_000}">'
    assert Seams("zh", is_markup=True).write(f"{tag}, ") == f"{tag}，"


def _joined(seams: Seams, gaps: list[str], texts: list[str]) -> str:
    fitted = seams.gaps([seams.write(gap) for gap in gaps], texts)
    return "".join(part for pair in zip(fitted, [*texts, ""], strict=False) for part in pair)


@pytest.mark.parametrize("languages", [("de", "en"), ("zh", "ja"), ("ko", "en")])
def test_otherwise_all_stays(languages: tuple[str, str]) -> None:
    assert seams_between(*languages) is None


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
