"""Training on large corpora: pairs are made, and what a training is seen to take is what it took."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.corpora.__main__ import main
from benchmarks.corpora.pairs import write_pairs
from dragoman_server.sizing.process_memory import memory_of


def test_pairs_are_those_given_with_other_numbers(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("ein hund\n20 hunde\n")
    (tmp_path / "b").write_text("a dog\n20 dogs\n")
    out = tmp_path / "c", tmp_path / "d"
    write_pairs(tmp_path / "a", tmp_path / "b", 9, out)
    sources, targets = (path.read_text().splitlines() for path in out)
    assert len(sources) == len(targets) == 9
    assert len(set(sources)) > 3
    for source, target in zip(sources, targets, strict=True):
        assert re.findall(r"\d+", source) == re.findall(r"\d+", target)
        assert target in ("a dog", source.replace("hunde", "dogs"))


def test_memory_of_what_a_process_started_is_counted() -> None:
    holder = "b = bytearray(60 << 20); b[::4096] = b'1' * len(b[::4096]); print('ready', flush=True); input()"
    starting = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {holder!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", starting], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        memory = memory_of(process.pid)
        process.communicate("\n")
    assert 60 << 20 < memory.own < memory.total < 200 << 20
    assert memory_of(os.getpid()).total > 1 << 20


@pytest.mark.long
def test_both_starts_are_measured(toy_folder: Path, tmp_path: Path) -> None:
    for name, split in (("val", "valid"), ("train", "train")):
        for side in ("de", "en"):
            (tmp_path / f"{name}.{side}").write_bytes((toy_folder / f"{split}.{side}").read_bytes())
    options = ["--data", str(tmp_path), "--pairs", "12000", "--minutes", "0.001"]
    options += ["--vocabulary", "60", "--markdown", str(tmp_path / "report.md")]
    done = CliRunner().invoke(main, options)
    assert done.exit_code == 0, done.output
    rows = [line for line in (tmp_path / "report.md").read_text().splitlines() if line.startswith("| 1")]
    assert [row.split(" | ")[:2] for row in rows] == [
        ["| 10,000", "first"],
        ["| 10,000", "second"],
        ["| 12,000", "first"],
        ["| 12,000", "second"],
    ]
