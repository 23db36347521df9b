"""`python -m benchmarks.segmentation` on a small corpus."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.segmentation.cuts import count_missed_cuts, wrong_cuts


def test_languages_with_a_corpus_or_a_list_are_measured(
    benchmark: Callable[..., Any], tmp_path: Path
) -> None:
    corpus = tmp_path / "data" / "tatoeba-de-en" / "train.de"
    corpus.parent.mkdir(parents=True)
    corpus.write_text("Er liebt mich.\nIch gehe!\nWer?\nOhne Punkt\n123.\n", encoding="utf-8")
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "de.txt").write_text("Am 3. Mai.\nEr kam. Sie ging.\n", encoding="utf-8")
    ran = benchmark("segmentation", "--data", tmp_path / "data", "--lists", lists, "--limit", 4, "--show")
    row = next(row for row in ran.results["rows"] if row["language"] == "de")
    assert 1 <= row["num_pairs"] <= 2
    assert (row["num_missed"], row["num_listed"], row["num_wrong"]) == (0, 2, 1)
    assert "Er kam. Sie ging." in ran.output
    assert "num_pairs" not in next(row for row in ran.results["rows"] if row["language"] == "zh")


def test_a_cut_that_is_missed_is_told_with_its_pair() -> None:
    counted = count_missed_cuts(["Das ist Dr.", "Das ist Dr."], "de")
    assert counted.missed == ["Das ist Dr.|Das ist Dr."]
    assert counted.num_pairs == 1
    # There sentences touch.
    assert count_missed_cuts(["你好。", "再见。"], "zh").missed == []
    assert wrong_cuts(["你好。再见。", "你好。"], "zh") == ["你好。再见。"]
