"""`python -m benchmarks.doors` on the toy model, with little load."""

from collections.abc import Callable
from typing import Any


def test_callers_are_answered_with_each_load(benchmark: Callable[..., Any], toy: Any) -> None:
    ran = benchmark(
        *("doors", "--bundle", toy.bundle, "--input", toy.source, "--beam", 2, "--repeats", 1),
        *("--per-second", 20, "--seconds", 1, "--idle", 5, "--refused", 20),
    )
    assert [row["load"] for row in ran.results["rows"]] == [
        "no load",
        "load on another server",
        "load on their server",
    ]
    for row in ran.results["rows"]:
        assert row["requests"] > 0
        assert 0 < row["p50"] <= row["p99"]
    assert ran.results["rows"][0]["times"] == 1
    assert "gRPC beside HTTP" in ran.markdown
