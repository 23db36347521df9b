"""`python -m benchmarks.device` on the toy model, on the CPU."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.conftest import ROOT


def test_both_kinds_of_batch_decode_alike(benchmark: Callable[..., Any], toy: Any) -> None:
    ran = benchmark(
        *("device", "--bundle", toy.bundle, "--device", "cpu", "--precisions", "fp16,fp32,int8"),
        *("--input", toy.source, "--limit", 12, "--sentences", "1,8", "--beam", 3),
        *("--threads", 1, "--repeats", 2),
    )
    rows = {(row["precision"], row["batch"], row["sentences"]): row for row in ran.results["rows"]}
    # The bundle has no fp16.
    assert rows.keys() == {
        (precision, batch, sentences)
        for precision in ("fp32", "int8")
        for batch in ("device", "host")
        for sentences in (1, 8)
    }
    for row in rows.values():
        assert row["sentences_per_second"] > 0
        assert row["regroup_ms"] > 0
        assert row["step_ms"] > 0
    # Two precisions, each with two sizes.
    assert [row["same_tokens"] for row in ran.results["ratios"]] == [1.0] * 4
    assert "against batches on the host" in ran.markdown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--device", "cpu", "--precisions", "fp16"], "has none of fp16, only fp32, int8"),
        (["--device", "cuda", "--precisions", "fp32"], "cuda cannot"),
    ],
)
def test_what_cannot_be_measured_is_said(toy: Any, options: list[str], message: str) -> None:
    if "cuda" in options and Path("/dev/nvidia0").exists():
        pytest.skip("there is a GPU")
    command = [sys.executable, "-m", "benchmarks.device", "--bundle", toy.bundle, "--input", toy.source]
    done = subprocess.run(
        [*map(str, command), *options], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert message in done.stderr
