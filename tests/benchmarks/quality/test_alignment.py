"""`python -m benchmarks.alignment` on a small corpus, without peers: they take a network."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.alignment.systems import measure
from benchmarks.environment import PeerMissingError

LINES = [("Der Hund.", "The dog."), ("Die Katze.", "The cat."), ("Hund, Katze!", "Dog, cat!")] * 10


def write_data(folder: Path) -> Path:
    files = {
        "tatoeba-de-en/train.de": "".join(f"{one}\n" for one, _ in LINES),
        "tatoeba-de-en/train.en": "".join(f"{other}\n" for _, other in LINES),
        "alignment/de-en-bicici/test.de": "hund und katze .\n",
        "alignment/de-en-bicici/test.en": "dog and cat .\n",
        "alignment/de-en-bicici/test.gold": "0-0 1-1 2-2 3p3\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.long
def test_each_model_is_scored_and_timed(benchmark: Callable[..., Any], tmp_path: Path) -> None:
    data = write_data(tmp_path / "data")
    ran = benchmark(
        "alignment", "--data", data, "--sets", "de-en", "--models", "ibm1,ibm4", "--peers", "", "--limit", 20
    )
    rows = ran.results["rows"]
    assert [row["system"] for row in rows] == ["ibm1", "ibm4"]
    assert rows[1]["grow-diag-final-and"] == 0
    assert all(row["cpu_seconds"] > 0 and row["mebibytes"] > 10 for row in rows)
    assert "| de-en | ibm4 | 0.0 |" in ran.markdown


def test_a_process_that_fails_is_told_with_what_it_said() -> None:
    with pytest.raises(PeerMissingError, match="no such thing"):
        measure([sys.executable, "-c", "raise SystemExit('no such thing')"])
