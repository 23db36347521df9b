"""The toy model as the benchmarks take it: a checkpoint, a bundle with everything in it, sentences."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dragoman_export.cli import export

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Toy:
    """What the commands are given."""

    checkpoint: Path
    bundle: Path
    source: Path
    reference: Path


@pytest.fixture(scope="session")
def toy(
    remembered_traces: None,
    toy_checkpoint: Path,
    toy_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Toy:
    """The toy model in fp32 and int8, with a shortlist."""
    bundle = tmp_path_factory.mktemp("measured") / "toy" / "1"
    options = ["--shortlist", "--recipe-folder", str(toy_folder)]
    result = CliRunner().invoke(export, [str(toy_checkpoint), "--out", str(bundle), *options])
    assert result.exit_code == 0, result.output
    return Toy(
        checkpoint=toy_checkpoint,
        bundle=bundle,
        source=toy_folder / "test.de",
        reference=toy_folder / "test.en",
    )


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
