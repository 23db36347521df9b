"""Peers in virtual environments and processes of their own: made once, then asked over and over.

One JSON object a line each way: first the task, which is answered when the model stands; then a setting each
time, which is answered with what it took.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from benchmarks.measuring import MeasurementError

FOLDER = Path(".venv-peers")
"""Where the environments are, in the repository's root; git ignores it."""


def make_environment(name: str, *installs: Sequence[str]) -> Path:
    """Installs packages, one call of pip after the other, into an environment of their own.

    Does nothing where that is done already. Returns its Python. Raises MeasurementError with what pip said.
    """
    folder = FOLDER / name
    python, ready = folder / "bin" / "python", folder / "ready"
    wanted = "\n".join(" ".join(packages) for packages in installs)
    if not ready.is_file() or ready.read_text() != wanted:
        run_command(sys.executable, "-m", "venv", "--clear", folder)
        for packages in installs:
            run_command(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
        ready.write_text(wanted)
    return python.absolute()


def run_command(*command: object) -> None:
    """Runs a process to its end. Raises MeasurementError with what it said where it fails."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MeasurementError(
            f"{' '.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-1500:]}"
        )


class Peer:
    """A peer that runs."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self._process = process
        self._errors = errors
        self.process_id = process.pid

    def ask(self, message: Mapping[str, object]) -> dict[str, Any]:
        """Sends a line and waits for the answer. Raises MeasurementError where the peer ended instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise MeasurementError(f"the peer ended with:\n{self._errors.read()[-1500:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def running_peer(
    python: Path, script: Path, task: Mapping[str, object], environment: Mapping[str, str]
) -> Iterator[tuple[Peer, dict[str, Any]]]:
    """The peer and its answer to the task. Raises MeasurementError."""
    with TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [str(python), str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | dict(environment),
        )
        with process:
            peer = Peer(process, errors)
            try:
                yield peer, peer.ask(task)
            finally:
                process.kill()
