"""`python -m benchmarks`: finds scenarios, takes turns, and writes what came out."""

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.benchmarks.conftest import ROOT

from benchmarks.measuring import in_turns, ratio, summarize


def python(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_each_scenario_is_listed_with_what_it_measures() -> None:
    listed = dict(line.split(maxsplit=1) for line in python("--list").stdout.splitlines())
    folder = ROOT / "benchmarks" / "scenarios"
    assert listed.keys() == {path.stem for path in folder.iterdir() if path.stem[0] not in "_."}
    assert all(len(summary) > 20 for summary in listed.values())


def test_a_scenario_prints_its_rows_and_writes_json_and_markdown(
    benchmark: Callable[..., Any],
) -> None:
    ran = benchmark("policy", "--only", "offline", "--seeds", 1)
    [row] = ran.results["rows"]
    assert row["workload"] == "offline"
    assert row["callers_per_second"] > 100
    assert ran.results["command"].startswith("python -m benchmarks policy --only offline")
    assert ran.results["machine"]["cores"] > 0
    assert ran.results["seeds"] == 1
    rate = f"{row['callers_per_second']:.1f}"
    assert f"| offline | {row['p50']:.0f} |" in ran.markdown
    assert f"| {rate} | – |" in ran.markdown
    assert f"`{ran.results['command']}`" in ran.markdown
    assert rate in ran.output


def test_what_cannot_be_measured_is_said_in_one_line() -> None:
    refused = python("policy", "--only", "nothing")
    assert refused.returncode == 2
    assert "none has 'nothing' in its name" in refused.stderr
    assert "No such command 'pollicy'" in python("pollicy").stderr
    absent = python("serve", "--limit", "0")
    assert "--limit" in absent.stderr


def test_a_ratio_is_taken_repeat_by_repeat() -> None:
    # Both were half as fast in the second repeat: the ratio does not show it.
    assert ratio([4.0, 2.0, 4.4], [2.0, 1.0, 2.0]).median == 2.0
    summary = summarize([12.0, 8.0, 10.0])
    assert (summary.median, summary.spread) == (10.0, pytest.approx(0.4))


def test_no_repeat_but_the_first_begins_when_the_time_is_over() -> None:
    cases = {"a": lambda: "a", "b": lambda: "b"}
    assert in_turns(cases, 3, str) == {"a": ["a"] * 3, "b": ["b"] * 3}
    assert in_turns(cases, 3, str, until=time.monotonic()) == {"a": ["a"], "b": ["b"]}
