"""What is slow to make and the same for all tests: made once, by the first process that needs it."""

import fcntl
import os
import shutil
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of a run have, and no other run."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def kept_folder(name: str, *sources: str) -> Path:
    """A folder that later runs have, too, until code of the sources, a pinned library or Python changes."""
    digest = sha256(sys.version.encode())
    code = [path for source in sources for path in (ROOT / source).rglob("*.py")]
    for path in (ROOT / "Makefile", ROOT / "constraints.txt", *sorted(code)):
        digest.update(f"\0{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    folder = ROOT / ".pytest_cache" / "made" / f"{name}-{digest.hexdigest()[:16]}"
    for other in folder.parent.glob(f"{name}-*"):
        if other != folder:
            shutil.rmtree(other, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def once(path: Path, make: Callable[[Path], object]) -> Path:
    """The folder at `path`, filled by `make` if nobody has; who comes meanwhile waits. It is for reading."""
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            partial = path.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            make(partial)
            partial.rename(path)
    return path
