"""Which language a text is in, decided from scores that anybody can add up."""

import sys

import pytest

from dragoman_server.detection import FOREIGN_MARGIN, LanguageDetector, choose
from dragoman_server.errors import UnsupportedError


def test_the_best_of_ours_is_taken_unless_another_is_far_better() -> None:
    near = choose([("de", -10.0), ("en", -12.0), ("lb", -9.0)], {"de", "en"}, num_bytes=100)
    assert near.language == "de"
    assert [each.language for each in near.candidates] == ["lb", "de", "en"]
    assert sum(each.confidence for each in near.candidates) == pytest.approx(1)
    far = choose([("de", -10.0), ("fr", -9.9 + FOREIGN_MARGIN)], {"de", "en"}, num_bytes=100)
    assert far.language is None
    assert far.candidates[0].language == "fr"
    assert not far.candidates[0].is_served


def test_a_language_is_called_as_its_models_call_it() -> None:
    found = choose([("en", -1.0), ("de", -9.0)], {"en-GB", "deu", "en-US"}, num_bytes=9)
    assert found.language == "en-GB"
    assert {each.language for each in found.candidates} == {"en-GB", "deu"}


def test_what_tells_nothing_is_in_no_language() -> None:
    assert choose([("de", -3.4e38), ("en", -3.4e38)], {"de", "en"}, num_bytes=0).candidates == ()


async def test_sentences_are_told_apart_and_long_texts_cost_no_more() -> None:
    texts = ["Wo ist der Bahnhof?", "Where is the station?", "Où est la gare ?", "駅はどこですか", "", "1234"]
    found = await LanguageDetector().detect([*texts, "Wo ist der Bahnhof? " * 5_000], {"de", "en"})
    assert [each.language for each in found] == ["de", "en", None, None, None, None, "de"]
    # Nothing more is certain of Japanese than that it is none of ours.
    assert found[3].candidates[0].language == "ja"


async def test_a_server_without_the_library_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(UnsupportedError, match="extra `web`"):
        await LanguageDetector().detect(["Ja."], {"de"})
