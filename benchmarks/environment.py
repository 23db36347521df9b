"""A virtual environment for a peer, made once: its packages must not touch the project's own."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(".venv-peers")
"""Where the environments are, in the repository's root; git ignores it."""


class PeerMissingError(Exception):
    """A peer cannot be installed or run here."""


def make_environment(name: str, *installs: Sequence[str]) -> Path:
    """Installs packages, one call of pip after the other, into an environment of their own.

    Does nothing where that is done already. Returns its Python. Raises PeerMissingError with what pip said.
    """
    folder = FOLDER / name
    python = folder / "bin" / "python"
    ready = folder / "ready"
    wanted = "\n".join(" ".join(packages) for packages in installs)
    if not ready.is_file() or ready.read_text() != wanted:
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        for packages in installs:
            _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
        ready.write_text(wanted)
    return python.absolute()


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PeerMissingError(f"{' '.join(command)} failed:\n{done.stderr[-1500:]}")
