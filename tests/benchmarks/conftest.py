"""Runs a scenario as a person does."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a command left."""

    results: dict[str, Any]
    markdown: str
    output: str


def python(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """Runs `python -m benchmarks` in the root."""
    command = [sys.executable, "-m", "benchmarks", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def benchmark(tmp_path: Path) -> Callable[..., Ran]:
    """Runs a scenario of that name, as a person does."""

    def run(name: str, *arguments: object) -> Ran:
        files = ["--json", tmp_path / "results.json", "--markdown", tmp_path / "results.md"]
        done = python(name, *arguments, *files)
        assert done.returncode == 0, done.stdout + done.stderr
        return Ran(
            results=json.loads((tmp_path / "results.json").read_text()),
            markdown=(tmp_path / "results.md").read_text(),
            output=done.stdout + done.stderr,
        )

    return run
