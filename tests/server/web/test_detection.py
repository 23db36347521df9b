"""Which language a text is in, decided from scores that anybody can add up."""

import statistics
import sys
import time

import pytest
from babel import Locale
from tests.server.conftest import CPU
from tests.server.web.conftest import MODELS, Web, serving

from dragoman_server.detection import FOREIGN_MARGIN, LanguageDetector, choose, load_identifier
from dragoman_server.errors import UnsupportedError

PHRASE = "A phrase of some words."


def test_the_best_of_ours_is_taken_unless_another_is_far_better() -> None:
    near = choose([("de", -10.0), ("en", -12.0), ("lb", -9.0)], PHRASE, {"de", "en"})
    assert near.language == "de"
    assert [each.language for each in near.candidates] == ["de", "en"]
    assert sum(each.confidence for each in near.candidates) == pytest.approx(1)
    scores = [("de", -10.0), ("fr", -9.9 + FOREIGN_MARGIN)]
    far = choose(scores, PHRASE, {"de", "en"})
    assert far.language is None
    assert far.candidates[0].language == "fr"
    assert not far.candidates[0].is_served
    # A word or two are of ours, whatever they look like.
    assert choose(scores, "Hallo Anna", {"de", "en"}).language == "de"


def test_an_uncertain_text_is_in_a_language_that_it_can_be_translated_from() -> None:
    scores = [("de", -10.0), ("en", -9.0)]
    assert choose(scores, PHRASE, {"de", "en"}, {"en"}).language == "en"
    unsure = choose(scores, PHRASE, {"de", "en"}, {"de"})
    assert unsure.language == "de"
    assert unsure.confidence < 0.5
    assert [each.language for each in unsure.candidates] == ["en", "de"]
    sure = [("de", -20.0), ("en", -9.0)]
    assert choose(sure, PHRASE, {"de", "en"}, {"de"}).language == "en"
    # Of one word more is asked.
    assert choose([("de", -12.0), ("en", -7.0)], "Moin", {"de", "en"}, {"de"}).language == "de"


def test_a_language_is_called_as_its_models_call_it() -> None:
    found = choose([("en", -1.0), ("de", -19.0)], PHRASE, {"en-GB", "deu", "en-US"}, {"deu"})
    assert found.language == "en-GB"
    assert {each.language for each in found.candidates} == {"en-GB", "deu"}


@pytest.mark.parametrize("text", ["", "1234", "😀 !"])
def test_a_text_without_letters_is_in_no_language(text: str) -> None:
    assert choose([("de", -1.0), ("en", -2.0)], text, {"de", "en"}).candidates == ()


async def test_sentences_are_told_apart_and_long_texts_cost_no_more() -> None:
    texts = ["Wo ist der Bahnhof?", "Where is the station?", "Où est la gare ?", "駅はどこですか", "", "1234"]
    found = await LanguageDetector().detect([*texts, "Wo ist der Bahnhof? " * 5_000], {"de", "en"})
    assert [each.language for each in found] == ["de", "en", None, None, None, None, "de"]
    # Nothing more is certain of Japanese than that it is none of ours.
    assert found[3].candidates[0].language == "ja"


@pytest.mark.parametrize("text", ["Hallo Anna", "Ja", "Brot", "Hallo", "Moin", "No.", "ok"])
@pytest.mark.parametrize("target", ["de", "en"])
def test_a_short_text_is_translated(web: Web, text: str, target: str) -> None:
    """By every door with an API of its own for that: never refused, nor left as it is without a word."""
    answer = web.post("/translate", {"q": text, "source": "auto", "target": target})
    assert answer.status == 200
    detected = answer.json["detectedLanguage"]
    assert detected["language"] == {"de": "en", "en": "de"}[target]
    assert 0 < detected["confidence"] <= 100
    over_v2 = web.post("/v2/translate", {"text": [text], "target_lang": target.upper()}).json["translations"]
    assert over_v2[0]["detected_source_language"] == detected["language"].upper()
    assert over_v2[0]["billed_characters"] == len(text)
    assert web.post("/detect", {"q": text}).json[0]["language"] in ("de", "en")


def test_what_is_surely_in_the_target_language_stays(web: Web) -> None:
    text = "The dog is sleeping."
    answer = web.post("/translate", {"q": text, "source": "auto", "target": "en"}).json
    assert (answer["translatedText"], answer["detectedLanguage"]["language"]) == (text, "en")


def test_a_server_that_is_ready_has_loaded_what_detects() -> None:
    """Loaded by the first text, it would take some hundred times as long as for the next."""
    load_identifier.cache_clear()
    with serving(models=MODELS, engine=CPU, max_loaded_models=1) as web:
        assert web.get("/readyz").status == 200

        def seconds() -> float:
            started = time.process_time()
            assert web.post("/detect", {"q": "Guten Morgen, meine Freunde."}).status == 200
            return time.process_time() - started

        first = seconds()
        assert first < 20 * statistics.median(seconds() for _ in range(9))


@pytest.mark.parametrize(("language", "share"), [("de", 0.9), ("en", 0.79)])
async def test_names_of_a_word_or_two_are_told_apart(language: str, share: float) -> None:
    """Those of languages, countries and currencies that CLDR has in one of both languages alone."""

    def names(of: str) -> set[str]:
        locale = Locale(of)
        found = {*locale.languages.values(), *locale.territories.values(), *locale.currencies.values()}
        return {name for name in found if name.replace(" ", "").isalpha() and name.count(" ") < 2}

    other = {"de": "en", "en": "de"}[language]
    texts = sorted(names(language) - names(other))
    assert len(texts) > 500
    found = await LanguageDetector().detect(texts, {"de", "en"})
    assert sum(each.language == language for each in found) > share * len(texts)
    # Many are certain enough to stay as they are where they are asked for in their own language.
    asked = await LanguageDetector().detect(texts, {"de", "en"}, wanted={other})
    assert sum(each.language == language for each in asked) > 0.3 * len(texts)


@pytest.mark.parametrize("module", ["py3langid.langid", "lingua"])
async def test_a_server_without_the_library_says_so(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    load_identifier.cache_clear()
    with pytest.raises(UnsupportedError, match="extra `web`"):
        await LanguageDetector().detect(["Ja."], {"de"})
