"""Warnings that two texts alone give rise to: the table's own examples, and people's translations."""

from collections import Counter
from pathlib import Path
from statistics import median

import pytest
from dragoman_bundle import open_bundle
from tests.growth import assert_linear
from tests.shipped import shipped_bundle

from dragoman_server.text.judge.doubts import LIMITS, doubts
from dragoman_server.text.translated import WarningKind

ROOT = Path(__file__).parents[3]
DATA = ROOT.parent / "shared" / "data"
SHIPPED = {pair: open_bundle(shipped_bundle(pair)) for pair in ("de-en", "en-de")}
USUAL = {"de-en": 0.86, "en-de": 1.16}
"""Characters of a translation to one of its source."""


def kinds(pair: str, source: str, translation: str, length_ratio: float | None = None) -> set[str]:
    encode = SHIPPED[pair].source_tokenizer.encode_ids
    found = doubts(
        source,
        translation,
        length_ratio=length_ratio,
        count_pieces=lambda words: list(map(len, encode(words))),
    )
    return {kind.value for kind, _ in found}


@pytest.mark.parametrize("kind", LIMITS)
def test_the_table_does_what_its_examples_say(kind: str) -> None:
    assert WarningKind(kind)
    for source, translation in LIMITS[kind]["doubted"]:
        assert kind in kinds("de-en", source, translation, USUAL["de-en"]), (source, translation)
    for source, translation in LIMITS[kind]["accepted"]:
        assert kind not in kinds("de-en", source, translation, USUAL["de-en"]), (source, translation)


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no texts in {DATA}")
@pytest.mark.parametrize("pair", USUAL)
def test_people_are_hardly_ever_doubted(pair: str) -> None:
    source, target = (
        (DATA / "tatoeba-de-en" / f"val.{language}").read_text().splitlines() for language in pair.split("-")
    )
    ratio = median(len(target) / len(source) for source, target in zip(source, target, strict=True))
    assert ratio == pytest.approx(USUAL[pair], abs=0.01)
    found = [kinds(pair, *texts, ratio) for texts in zip(source, target, strict=True)]
    counts = Counter(kind for each in found for kind in each)
    assert all(count < 0.01 * len(found) for count in counts.values()), counts


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no texts in {DATA}")
@pytest.mark.parametrize("pair", ["en-tr", "es-tr", "en-cs", "en-zh", "en-ru", "fr-pl"])
def test_lengths_are_judged_alike_in_any_languages(pair: str) -> None:
    source, target = (
        (DATA / "tests" / "ud-pud" / f"pud.{language}").read_text().splitlines()
        for language in pair.split("-")
    )
    ratio = median(len(target) / len(source) for source, target in zip(source, target, strict=True))
    lengths = {"omission", "length"}
    doubted = sum(bool(lengths & kinds("en-de", *texts, ratio)) for texts in zip(source, target, strict=True))
    # Beside what is 65% of the usual length or less in Chinese: numbers and foreign names.
    assert doubted < 0.02 * len(source)
    cut = [(text, target[: len(target) // 2]) for text, target in zip(source, target, strict=True)]
    assert sum("omission" in kinds("en-de", *texts, ratio) for texts in cut) > 0.6 * len(source)


def test_what_is_kept_is_no_untranslated_part() -> None:
    source = "Sag bitte niemals wieder nein zu mir."
    translation = "Say bitte niemals wieder nein to me."
    found = dict(doubts(source, translation, length_ratio=1, count_pieces=lambda words: [1] * len(words)))
    start, end = found[WarningKind.UNTRANSLATED]
    assert source[start:end] == "bitte niemals wieder nein"
    kept = [(0, 4), (29, len(source))]
    assert not list(
        doubts(
            source, translation, length_ratio=1, count_pieces=lambda words: [1] * len(words), translated=kept
        )
    )


@pytest.mark.parametrize("text", ["a", "A ", "a b ", "Aa Aa ", "( ", "a b c "])
def test_the_time_grows_with_the_text(text: str) -> None:
    def doubt(size: int) -> None:
        list(doubts(text * size, text * size, length_ratio=1, count_pieces=lambda words: [9] * len(words)))

    assert_linear(doubt, 1000, 1 << 17)
