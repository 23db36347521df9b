"""An engine in this process, which corpora are translated by."""

from pathlib import Path

from dragoman_server.offline.system import open_in_process

BUNDLE_OPTIONS = {"beam_size": None, "length_penalty": None, "device": "cpu", "precision": "auto"}


def test_texts_are_translated_one_to_one_and_told_of_if_they_were_cut(models: Path) -> None:
    texts = ["Ein Satz. Noch einer.", "", "wort " * 40 + "ende", "Ja."]
    bundle = str(models / "de-en" / "1")
    with open_in_process(bundle, segmentation="sentence", **BUNDLE_OPTIONS) as translator:
        assert [text for text, _ in translator.translate(texts)] == texts
        assert [is_cut for _, is_cut in translator.translate(texts[:2])] == [False, False]
        assert translator.translate([]) == []
