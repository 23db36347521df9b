"""A `dragoman serve` on ports of its own that is killed and started again there."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from types import TracebackType
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

START_SECONDS = 120.0
STOP_SECONDS = 60.0


class DrillError(RuntimeError):
    """A server did not start, so there is nothing to check."""


class Server:
    """A server with the same ports however often it starts. Its log grows in one file."""

    def __init__(self, name: str, models: Path, folder: Path, options: Sequence[str] = ()) -> None:
        self.log = folder / f"{name}.log"
        self.port, self.metrics_port = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "dragoman", "serve", "--models", str(models)]
        self._command += ["--port", str(self.port), "--metrics-port", str(self.metrics_port)]
        self._command += ["--device", "cpu", *options]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        self.wait_until_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def process_id(self) -> int:
        """Of the main process."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts the process, and does not wait until it is ready."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "GRPC_VERBOSITY": "NONE"},
            )

    def wait_until_ready(self) -> None:
        """Waits until it takes calls. Raises DrillError where it ends, or takes too long."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if not self.is_alive:
                raise DrillError(f"{self.address} ended:\n{self.log.read_text()[-2000:]}")
            if self.is_serving():
                return
            time.sleep(0.05)
        raise DrillError(f"{self.address} was not ready after {START_SECONDS:.0f} s")

    def is_serving(self) -> bool:
        """Whether it takes calls."""
        try:
            return self.metric("dragoman_serving") == 1
        except (OSError, HTTPException):
            return False

    def metric(self, name: str, **labels: str) -> float:
        """The sum of all samples of that name that have these labels. Raises OSError."""
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=10) as response:
            text = response.read().decode()
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def signal(self, number: int) -> None:
        """Sends a signal to the main process."""
        if self._process is not None and self.is_alive:
            self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL: no last word to anybody."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def stop(self) -> int | None:
        """SIGTERM: it drains. Its exit code; None where it had to be killed."""
        if self._process is None:
            return None
        self.signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def entries(self) -> list[dict[str, object]]:
        """The lines of its log, which are JSON; what is not has the key "no json" alone."""
        return [_entry(line) for line in self.log.read_text(errors="replace").splitlines()]


def _entry(line: str) -> dict[str, object]:
    try:
        entry = json.loads(line)
    except ValueError:
        return {"no json": line}
    return entry if isinstance(entry, dict) else {"no json": line}


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port
