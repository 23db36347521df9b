"""Bundles in this process: corpora are translated by them, and they are measured."""

from pathlib import Path

import pytest
from dragoman_bundle import open_bundle
from tests.shipped import shipped_bundle

from dragoman_server.engine.onnx import opening
from dragoman_server.offline.system import open_bundle_system, open_in_process

BUNDLE_OPTIONS = {"beam_size": None, "length_penalty": None, "device": "cpu", "precision": "auto"}


def test_texts_are_translated_one_to_one_and_told_of_if_they_were_cut(models: Path) -> None:
    texts = ["Ein Satz. Noch einer.", "", "wort " * 40 + "ende", "Ja."]
    bundle = str(models / "de-en" / "1")
    with open_in_process(bundle, segmentation="sentence", **BUNDLE_OPTIONS) as translator:
        assert [text for text, _ in translator.translate(texts)] == texts
        assert [is_cut for _, is_cut in translator.translate(texts[:2])] == [False, False]
        assert translator.translate([]) == []


OPTIONS = {"beam_size": 3, "device": "cpu", "precision": "auto"}
SHIPPED = str(shipped_bundle("de-en"))
ANY = {"source_language": None, "target_language": None}


def test_lines_are_translated_one_to_one(models: Path) -> None:
    lines = ["Ein Satz. Noch einer.", "", "wort " * 40 + "ende", "Ja."]
    with open_bundle_system(
        str(models / "de-en" / "1"), source_language="de", target_language="EN", **OPTIONS
    ) as system:
        assert system.translate(lines) == lines
        assert system.translate([]) == []
        assert system.description == "de-en/1 fp32, beam 3, CPUExecutionProvider"
        manifest = open_bundle(models / "de-en" / "1").manifest
        assert system.details == {
            "bundle": "de-en/1",
            "checksum": manifest.checksum(),
            "precision": "fp32",
            "shortlist": False,
            "length_penalty": manifest.decoding.length_penalty,
        }


def test_a_shortlist_that_is_not_there_is_refused(models: Path) -> None:
    with (
        pytest.raises(ValueError, match="has no shortlist; export it with --shortlist"),
        open_bundle_system(str(models / "de-en" / "1"), **ANY, **OPTIONS, shortlist=True),
    ):
        pass


@pytest.mark.parametrize("shortlist", [None, True])
@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_shortlist_that_was_asked_for_is_not_left_out_silently(
    beam_size: int, shortlist: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "GREEDY_SHORTLIST_VOCABULARY", 1_000_000)
    options = {**ANY, **OPTIONS, "beam_size": beam_size, "shortlist": shortlist}
    if shortlist and beam_size == 1:
        with pytest.raises(ValueError, match="take --beam 2 or more"), open_bundle_system(SHIPPED, **options):
            pass
        return
    with open_bundle_system(SHIPPED, **options) as system:
        assert system.description.endswith("with a shortlist") is (beam_size > 1)
        assert system.details["shortlist"] is (beam_size > 1)
        assert system.translate(["Guten Morgen."]) != [""]


def test_each_line_has_its_own_translation_though_some_are_asked_again() -> None:
    sentences = (
        "Ein Mann mit einem {} orangefarbenen Hut, der etwas anstarrt.",
        "Ein Boston Terrier läuft über {} saftig-grünes Gras vor einem weißen Zaun.",
        "{} Ein Mädchen in einem Karateanzug bricht ein Brett mit einem Tritt.",
        "Fünf Leute in Winterjacken und mit Helmen stehen {} im Schnee mit Schneemobilen im Hintergrund.",
    )
    lines = [sentence.format(f"{{x{place}}}") for place, sentence in enumerate(sentences * 3)]
    with open_bundle_system(SHIPPED, **ANY, **OPTIONS) as system:
        translated = system.translate(lines)
    assert [f"{{x{place}}}" in text for place, text in enumerate(translated)] == [True] * len(lines)
