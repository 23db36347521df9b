"""The error rate of a model's attention on gold links: a model that copies, and links drawn by hand."""

from pathlib import Path

import pytest
from tests.server.copying_bundle import write_bundle

from benchmarks.alignment.attention import attention_row


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "alignment" / "de-en-bicici"
    folder.mkdir(parents=True)
    (folder / "test.de").write_text("ab cd .\nef\n")
    (folder / "test.en").write_text("ab  cd .\nef\n")
    return tmp_path / "data"


@pytest.mark.parametrize(("gold", "error"), [("0-0 1-1 2p2\n0-0\n", 0.0), ("0-1 1-0\n\n", 100.0)])
def test_links_are_held_against_those_that_people_drew(
    data: Path, tmp_path: Path, gold: str, error: float
) -> None:
    (data / "alignment" / "de-en-bicici" / "test.gold").write_text(gold)
    write_bundle(tmp_path / "models")
    row = attention_row(tmp_path / "models" / "de-en" / "1", data)
    assert row is not None
    assert row["model"] == "de-en/1"
    assert row["strongest"] == pytest.approx(error)
    assert row["served"] == pytest.approx(error)
    assert row["links"] == 4
