"""What tests of processes share."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _tests_are_importable_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker unpickles its opener, which is a function of these tests."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
