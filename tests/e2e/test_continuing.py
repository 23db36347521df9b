"""A language model on the whole path: trained, exported, served and asked how texts go on."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from dragoman_bundle import open_bundle
from tests.server.server_process import ServerProcess

from dragoman import Client
from dragoman_export.cli import export
from dragoman_training.checkpoint import load_checkpoint
from dragoman_training.decoding.translator import Translator

BEGINNINGS = ["the old man", "never a small", "a bird sees the", "the", "today the young young dog calls"]


@pytest.fixture(scope="module")
def models(toy_lm: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    result = CliRunner().invoke(export, [str(toy_lm), "--out", str(folder / "lm" / "1")])
    assert result.exit_code == 0, result.output
    assert "shortlist" not in result.output
    assert open_bundle(folder / "lm" / "1").shortlist is None
    return folder


@pytest.fixture(scope="module", params=["fp32", "int8"])
def server(request: pytest.FixtureRequest, models: Path) -> Iterator[ServerProcess]:
    with ServerProcess(models, "--precision", request.param) as running:
        yield running
        assert running.stop()[0] == 0


def test_the_server_continues_texts_as_the_checkpoint_does(server: ServerProcess, toy_lm: Path) -> None:
    with Client(server.address) as client:
        (model,) = client.models(source="en", target="en")
        continued = client.translate(BEGINNINGS, source="en", target="en", beam_size=3, alignments=True)
    texts = [each.text for each in continued]
    loaded = load_checkpoint(toy_lm)
    tokenizer = loaded.target_tokenizer
    decoding = replace(loaded.recipe.decoding, beam_size=3)
    expected = Translator(loaded.model, tokenizer, tokenizer, decoding).translate(BEGINNINGS)
    if model.precision == "fp32":
        assert texts == expected
    # Together each makes a sentence of the toy's: perhaps an adverb, somebody, a verb, and somebody.
    somebody = r"(a|the)( (old|young|red|small))* (man|dog|bird|fish)"
    sentence = rf"((today|tomorrow|never|often) )?{somebody} (sees|calls|seeks|finds) {somebody}\."
    for beginning, text in zip(BEGINNINGS, texts, strict=True):
        assert re.fullmatch(sentence, f"{beginning} {text}")
    for beginning, each in zip(BEGINNINGS, continued, strict=True):
        links = each.hypotheses[0].alignments
        assert {beginning[link.source_start : link.source_end] for link in links} <= set(beginning.split())
        assert links
