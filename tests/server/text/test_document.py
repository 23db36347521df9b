"""Sentences of the engine, made of a text."""

from dataclasses import replace
from pathlib import Path

import pytest
from dragoman_bundle import open_bundle
from tests.server.copying_bundle import IDS, MANIFEST, write_bundle

from dragoman_server.text.options import TranslationOptions
from dragoman_server.text.stages import prepare


@pytest.mark.parametrize("source_end", [True, False])
def test_a_source_ends_as_its_model_was_trained_with(tmp_path: Path, source_end: bool) -> None:
    bundle = open_bundle(write_bundle(tmp_path, manifest=replace(MANIFEST, source_end=source_end)))
    options = TranslationOptions(beam_size=1, length_penalty=1.0)
    document = prepare("Ein Hund. Zwei Vögel.", bundle, options, deadline=None)
    end = [IDS.eos] if source_end else []
    assert [list(sentence.source) for sentence in document.sentences] == [
        [*ids, *end] for ids in bundle.source_tokenizer.encode_ids(["Ein Hund.", "Zwei Vögel."])
    ]
