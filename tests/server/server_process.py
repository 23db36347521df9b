"""A server in a process of its own, for signals and exit codes, and files that it has to wait for."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.server.hanging.sitecustomize import SUFFIX, open_late

COMMAND = [sys.executable, "-m", "dragoman_server"]


class ServerProcess:
    """`python -m dragoman_server` as a user starts it."""

    def __init__(
        self, *arguments: str, command: Sequence[str] = COMMAND, environment: Mapping[str, str] | None = None
    ) -> None:
        self.process = subprocess.Popen(
            [*command, "--device", "cpu", "--metrics-port", "0", *arguments],
            stderr=subprocess.PIPE,
            text=True,
            # gRPC's own lines are no JSON.
            env={**os.environ, "GRPC_VERBOSITY": "NONE", **(environment or {})},
        )
        self.log: list[dict[str, object]] = []

    def wait_for(self, event: str) -> dict[str, object]:
        """Reads the log up to that event."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(json.loads(line))
            if self.log[-1]["message"] == event:
                return self.log[-1]
        raise AssertionError(f"no {event!r} in {self.log}")

    def end(self) -> tuple[int, str]:
        """Its exit code and the rest of its log."""
        _, rest = self.process.communicate(timeout=60)
        return self.process.returncode, rest

    def kill(self) -> None:
        """Ends it where it has not ended."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


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
