"""The error rate of a model's attention on gold links: a model that copies, and links drawn by hand."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.server.copying_bundle import MANIFEST, write_bundle

from benchmarks.alignment.attention import Attention


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "alignment" / "de-en-bicici"
    folder.mkdir(parents=True)
    (folder / "test.de").write_text("ab cd .\nef\n")
    (folder / "test.en").write_text("ab  cd .\nef\n")
    corpus = tmp_path / "data" / "tatoeba-de-en"
    corpus.mkdir()
    for language in ("de", "en"):
        (corpus / f"train.{language}").write_text("ab cd.\nef ab.\n" * 20)
        (corpus / f"val.{language}").write_text("cd ef.\n")
    return tmp_path / "data"


@pytest.mark.parametrize("languages", [("de", "en"), ("en", "de")])
@pytest.mark.parametrize(("gold", "error"), [("0-0 1-1 2p2\n0-0\n", 0.0), ("0-1 1-0\n\n", 100.0)])
def test_links_are_held_against_those_that_people_drew(
    data: Path, tmp_path: Path, gold: str, error: float, languages: tuple[str, str]
) -> None:
    (data / "alignment" / "de-en-bicici" / "test.gold").write_text(gold)
    name = "-".join(languages)
    manifest = replace(MANIFEST, name=name, source_language=languages[0], target_language=languages[1])
    write_bundle(tmp_path / "models", manifest=manifest)
    [row] = Attention(data, tmp_path, with_val=False).rows(tmp_path / "models" / name / "1")
    assert row["set"] == "de-en"
    assert row["model"] == f"{name}/1"
    assert row["pairs"] == 2
    assert row["strongest"] == pytest.approx(error)
    assert row["served"] == pytest.approx(error)
    assert row["links"] == 4


def test_a_validation_text_is_linked_by_an_aligner(data: Path, tmp_path: Path) -> None:
    (data / "alignment" / "de-en-bicici" / "test.gold").write_text("0-0\n0-0\n")
    write_bundle(tmp_path / "models")
    rows = Attention(data, tmp_path, with_val=True).rows(tmp_path / "models" / "de-en" / "1")
    assert [row["set"] for row in rows] == ["de-en", "de-en, val"]
    assert rows[1]["pairs"] == 1
    assert rows[1]["served"] == pytest.approx(0)
