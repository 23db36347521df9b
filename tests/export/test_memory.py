"""Too little memory is said before an export is tried, and a full disk leaves nothing half written."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from dragoman_bundle.machine import available_memory
from tests.full_disk import disk_with

from dragoman_export.cli import export

INFO = "MemTotal:  8000 kB\nMemAvailable:  4000 kB\n"


@pytest.fixture
def info(tmp_path: Path) -> Path:
    (tmp_path / "meminfo").write_text(INFO)
    return tmp_path / "meminfo"


def write_group(folder: Path, **files: object) -> Path:
    for name, value in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{value}\n")
    return folder


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 4000 * 1024),
        ({"memory_DOT_max": "max", "memory_DOT_current": 1, "memory_DOT_stat": "file 7"}, 4000 * 1024),
        ({"memory_DOT_max": 900, "memory_DOT_current": 700, "memory_DOT_stat": "inactive_file 50"}, 250),
        ({"memory_DOT_max": 900, "memory_DOT_current": 950, "memory_DOT_stat": "anon 50"}, 0),
        (
            {
                "memory__memory_DOT_limit_in_bytes": 900,
                "memory__memory_DOT_usage_in_bytes": 700,
                "memory__memory_DOT_stat": "inactive_file 9\ntotal_inactive_file 50",
            },
            250,
        ),
        ({"memory__memory_DOT_limit_in_bytes": 2**63 - 4096}, 4000 * 1024),
    ],
    ids=["no group", "no limit", "limit", "full", "version 1", "not whole"],
)
def test_available_memory_is_the_machine_s_or_the_control_group_s(
    tmp_path: Path, info: Path, files: dict[str, object], expected: int
) -> None:
    assert available_memory(write_group(tmp_path / "cgroup", **files), info) == expected


def call(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(export, [str(argument) for argument in arguments])
    return result.exit_code, " ".join(result.output.split())


def test_a_checkpoint_that_memory_is_too_small_for_is_not_tried(luong_file: Path, tmp_path: Path) -> None:
    arguments = [luong_file, "--out", tmp_path / "de-en" / "1", "--precisions", "fp32"]
    code, output = call(*arguments, "--max-memory", 0.5)
    assert code == 1
    assert "0.5 GB are available" in output
    assert "reading the checkpoint" not in output
    assert not (tmp_path / "de-en").exists()


def test_a_disk_that_is_full_half_way_leaves_nothing_half_written(luong_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "de-en" / "1"
    arguments = [luong_file, "--out", out, "--precisions", "fp32,int8", "--no-shortlist"]
    with disk_with(6000):
        code, output = call(*arguments)
    assert code == 1
    assert "[4/7] fp32: decoding" not in output
    assert "File too large" in output
    assert "nothing was written" in output
    assert list(out.parent.iterdir()) == []
    assert call(*arguments)[0] == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with disk_with(6000):
        assert call(*arguments, "--force")[0] == 1
    assert [path.name for path in out.parent.iterdir()] == ["1"]
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
