"""`python -m benchmarks.decode` on the toy model, and the aims it compares with."""

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.decode.aims import compare

SYSTEMS = [
    "tutorial",
    "torch_batched",
    "onnx_static",
    "engine_fp32",
    "engine_int8",
    "engine_int8_shortlist",
]


def test_every_system_translates_the_file_alike(benchmark: Callable[..., Any], toy: Any) -> None:
    ran = benchmark(
        *("decode", "--bundle", toy.bundle, "--checkpoint", toy.checkpoint),
        *("--input", toy.source, "--reference", toy.reference, "--limit", 20),
        *("--beams", "1,2", "--threads", 1, "--repeats", 2, "--profile"),
    )
    rows = ran.results["rows"]
    for row in rows:
        assert row.keys() >= {
            *("system", "beam", "threads", "words_per_second", "sentences_per_second", "bleu", "spread")
        }
        assert row["words_per_second"] > row["sentences_per_second"] > 0
        assert len(row["seconds"]) == 2
        assert row["bleu"] > 80
    assert [(row["system"], row["beam"]) for row in rows] == [
        *((system, 1) for system in SYSTEMS),
        *((system, 2) for system in SYSTEMS if system != "tutorial"),
    ]
    # The same model in fp32 says the same, however it is run.
    scores = {(row["system"], row["beam"]): row["bleu"] for row in rows}
    assert scores["tutorial", 1] == scores["torch_batched", 1] == scores["onnx_static", 1]
    assert scores["torch_batched", 2] == scores["onnx_static", 2] == scores["engine_fp32", 2]
    assert len(ran.results["ratios"]) == 8
    assert {host["system"] for host in ran.results["host"]} == {"engine_int8", "engine_int8_shortlist"}
    assert all(0 < host["outside_share"] < 1 for host in ran.results["host"])
    assert "| tutorial | 1 | 1 |" in ran.markdown


def test_what_the_bundle_lacks_is_left_out_with_a_reason(
    benchmark: Callable[..., Any], toy: Any, toy_models: Any
) -> None:
    ran = benchmark(
        *("decode", "--bundle", toy_models / "toy" / "1", "--input", toy.source),
        *("--reference", toy.reference, "--limit", 3, "--beams", 1, "--threads", 1, "--repeats", 1),
        *("--systems", "tutorial,engine_int8,engine_int8_shortlist"),
    )
    assert [row["system"] for row in ran.results["rows"]] == ["engine_int8"]
    assert "--checkpoint" in ran.results["skipped"]["tutorial, beam 1, threads 1"]
    assert "no shortlist" in ran.results["skipped"]["engine_int8_shortlist, beam 1, threads 1"]


def test_another_input_without_a_reference_has_no_bleu(benchmark: Callable[..., Any], toy: Any) -> None:
    ran = benchmark(
        *("decode", "--bundle", toy.bundle, "--input", toy.source, "--limit", 2),
        *("--systems", "engine_fp32,engine_int8_shortlist", "--beams", 1, "--threads", 1, "--repeats", 1),
    )
    assert [row["bleu"] for row in ran.results["rows"]] == [None, None]
    assert ran.results["ratios"] == []
    assert ran.markdown.count("| – |") == 2


def test_without_a_bundle_the_shipped_one_is_measured(benchmark: Callable[..., Any], toy: Any) -> None:
    ran = benchmark(
        *("decode", "--input", toy.source, "--reference", toy.reference, "--limit", 2),
        *("--systems", "engine_int8", "--beams", 1, "--threads", 1, "--repeats", 1),
    )
    assert ran.results["bundle"] == "de-en/1"
    assert [row["system"] for row in ran.results["rows"]] == ["engine_int8"]


def row(system: str, beam: int, speed: float, bleu: float = 40.0) -> dict[str, object]:
    seconds = [1000 / speed, 2000 / speed, 500 / speed]
    return {"system": system, "beam": beam, "threads": 2, "seconds": seconds, "bleu": bleu}


def test_a_beam_is_compared_with_the_greedy_tutorial() -> None:
    ratios = compare(
        [
            row("tutorial", 1, 100.0),
            row("torch_batched", 5, 500.0),
            row("engine_int8_shortlist", 5, 3500.0, bleu=39.6),
            row("engine_fp32", 5, 1000.0),
        ]
    )
    assert [(ratio["value"], ratio["reached"]) for ratio in ratios] == [
        (pytest.approx(35.0), True),
        (pytest.approx(7.0), False),
        (pytest.approx(-0.4), False),
    ]
