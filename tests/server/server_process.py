"""A server in a process of its own, for signals and exit codes, and files that it has to wait for."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from tests.server.hanging.sitecustomize import SUFFIX, open_late

COMMAND = [sys.executable, "-m", "dragoman"]


class ServerProcess:
    """`dragoman serve` as a user starts it, on ports that the system chooses."""

    def __init__(
        self,
        models: Path,
        *options: object,
        command: Sequence[str] = (*COMMAND, "serve"),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        fixed = ["--models", models, "--port", 0, "--metrics-port", 0, "--device", "cpu"]
        # Its log is nobody's but its own without this variable, too.
        own = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
        self.process = subprocess.Popen(
            [*command, *map(str, [*fixed, *options])],
            stderr=subprocess.PIPE,
            text=True,
            env={**own, **(environment or {})},
        )
        self.log: list[dict[str, Any]] = []

    def wait_for(self, event: str) -> dict[str, Any]:
        """Reads the log up to that event."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(json.loads(line))
            if self.log[-1]["message"] == event:
                return self.log[-1]
        raise AssertionError(f"no {event!r} in {self.log}")

    @cached_property
    def ports(self) -> tuple[int, int | None]:
        """Those of gRPC and of HTTP, of a server that is ready."""
        ready = self.wait_for("ready")
        return ready["port"], ready["http_port"]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.ports[0]}"

    def end(self) -> tuple[int, str]:
        """Its exit code and the rest of its log."""
        _, rest = self.process.communicate(timeout=60)
        return self.process.returncode, rest

    def stop(self) -> tuple[int, str]:
        """The same, once it was told to end."""
        self.process.terminate()
        return self.end()

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, *_: object) -> None:
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
