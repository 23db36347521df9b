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


@pytest.fixture
def benchmark(tmp_path: Path) -> Callable[..., Ran]:
    """Runs `python -m benchmarks NAME` in the root, as a person does."""

    def run(name: str, *arguments: object) -> Ran:
        files = ["--json", tmp_path / "results.json", "--markdown", tmp_path / "results.md"]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks", name, *map(str, (*arguments, *files))],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return Ran(
            results=json.loads((tmp_path / "results.json").read_text()),
            markdown=(tmp_path / "results.md").read_text(),
            output=done.stdout + done.stderr,
        )

    return run
