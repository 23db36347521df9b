"""Processors counted from control groups written as files."""

import os
from pathlib import Path

import pytest
from dragoman_bundle.machine import count_processors


@pytest.fixture(autouse=True)
def _eight_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


@pytest.mark.parametrize(
    ("quota", "expected"), [("max", 8), ("200000", 2), ("250000", 3), ("50000", 1), ("9900000", 8)]
)
def test_the_quota_of_a_control_group_counts(tmp_path: Path, quota: str, expected: int) -> None:
    (tmp_path / "cpu.max").write_text(f"{quota} 100000\n")
    assert count_processors(tmp_path) == expected


@pytest.mark.parametrize(("quota", "expected"), [("-1", 8), ("400000", 4)])
def test_the_quota_of_an_old_control_group_counts(tmp_path: Path, quota: str, expected: int) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert count_processors(tmp_path) == expected


def test_without_control_groups_the_processors_of_the_process_count(tmp_path: Path) -> None:
    assert count_processors(tmp_path) == 8
