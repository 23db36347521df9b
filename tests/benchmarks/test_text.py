"""`python -m benchmarks.text` on a few lines."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.text.hard_texts import HardText


def test_it_measures_what_comes_through(benchmark: Callable[..., Any], tmp_path: Path) -> None:
    hard = tmp_path / "hard.jsonl"
    hard.write_text(
        "\n".join(
            json.dumps(line)
            for line in (
                {"text": "Hallo {name}!", "kind": "placeholder", "must": [["{name}"]], "must_not": []},
                {
                    "text": "<b>Hallo</b>",
                    "kind": "markup",
                    "must": [["<b>"]],
                    "must_not": [],
                    "format": "html",
                },
            )
        )
    )
    (tmp_path / "de").write_text("Der Hund ist da.\nIch habe ein Haus.\n")
    (tmp_path / "en").write_text("The dog is there.\nI have a house.\n")
    ran = benchmark(
        "text",
        "--hard-texts",
        hard,
        "--input",
        tmp_path / "de",
        "--reference",
        tmp_path / "en",
        "--repeats",
        1,
    )
    assert [(row["kind"], row["num_on"]) for row in ran.results["hard_texts"]] == [
        ("placeholder", 1),
        ("markup", 1),
        ("all", 2),
    ]
    assert all(row["num_on"] == row["num_lines"] == 2 for row in ran.results["kept"])
    assert [row["num_on"] for row in ran.results["terms"]] == [2, 2]
    assert [row["protection"] for row in ran.results["costs"]] == ["off", "on"]


def test_capitals_are_compared_as_capitals() -> None:
    line = HardText(text="", kind="capitals", must=(("GOOD", "FINE"),), must_not=("x",), is_html=False)
    assert line.passes("GOOD.")
    assert not line.passes("good.")
    assert not line.passes("GOOD x")
