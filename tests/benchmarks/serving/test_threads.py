"""`python -m benchmarks.threads` on the toy model."""

from collections.abc import Callable
from typing import Any


def test_every_arrangement_translates(benchmark: Callable[..., Any], toy: Any) -> None:
    ran = benchmark(
        *("threads", "--bundle", toy.bundle, "--input", toy.source, "--limit", 12, "--beam", 2),
        *("--threads", 2, "--alone", 3, "--repeats", 1),
    )
    rows = {row["arrangement"]: row for row in ran.results["rows"]}
    assert list(rows) == ["1 x 1", "1 x 2", "1 x 2, spinning", "2 x 1, in one process", "2 x 1"]
    for row in rows.values():
        assert row["sentences_per_second"] > 0
        assert row["latency_ms"] > 0
    assert rows["1 x 1"]["throughput_ratio"] == rows["1 x 1"]["latency_ratio"] == 1
    assert "| 2 x 1 |" in ran.markdown
