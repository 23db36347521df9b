"""Files that a server reads and has to wait for, as on a file system that hangs."""

import os
from pathlib import Path

import pytest
from tests.server.hanging.sitecustomize import SUFFIX, open_late

HANGING = {
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent / "hanging"), os.environ.get("PYTHONPATH", "")])
}
"""The environment of a process whose files may be late."""


def hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets files be late in this process."""
    monkeypatch.setattr(os, "open", open_late)


def make_late(path: Path) -> Path:
    """From now on, whoever opens the file waits until the pipe that is returned was opened and closed.

    To open the pipe takes until somebody waits.
    """
    pipe = path.with_name(path.name + SUFFIX)
    pipe.parent.mkdir(exist_ok=True)
    os.mkfifo(pipe)
    return pipe
