"""Parts of a sentence between a language with spaces and one without."""

import pytest

from dragoman_server.text.unit.seams import seams_between


@pytest.mark.parametrize(
    ("languages", "gaps", "texts", "expected"),
    [
        (("zh", "en"), ["", "汤姆", ""], ["I know", "today."], "I know 汤姆 today."),
        (("zh", "en"), ["", "Tom。"], ["I know"], "I know Tom."),
        (("ja", "de"), ["Tom、", "，Li（", ""], ["er ist da", "gut"], "Tom, er ist da, Li (gut"),
        (("zh", "en"), ["", " Tom "], ["I know"], "I know Tom"),
        (("en", "zh"), ["老王 ", ""], ["很快乐。"], "老王很快乐。"),
        (("en", "zh"), ["", " 老王."], ["我知道"], "我知道老王。"),
        (("en", "ja"), ["", " Tom, ", "!"], ["私は", "です"], "私は Tom、です！"),
        (("en", "th"), ["", " Tom."], ["ฉันรู้จัก"], "ฉันรู้จัก Tom."),
    ],
)
def test_spaces_and_punctuation_are_those_of_the_translation(
    languages: tuple[str, str], gaps: list[str], texts: list[str], expected: str
) -> None:
    seams = seams_between(*languages)
    assert seams is not None
    fitted = seams.gaps([gap.translate(seams.marks) for gap in gaps], texts)
    joined = "".join(part for pair in zip(fitted, [*texts, ""], strict=False) for part in pair)
    assert joined == expected


@pytest.mark.parametrize("languages", [("de", "en"), ("zh", "ja"), ("ko", "en")])
def test_otherwise_all_stays(languages: tuple[str, str]) -> None:
    assert seams_between(*languages) is None
