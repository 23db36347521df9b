"""Real `dragoman serve` processes on loopback: started, asked for their metrics, killed, started again."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.measuring import MeasurementError

START_SECONDS, STOP_SECONDS = 300.0, 60.0
MAX_CALLS = 1_000_000
"""Calls and queued sentences that a measured server admits: a benchmark finds its limits elsewhere."""


class ServerError(MeasurementError):
    """A server did not start, or ended on its own."""


class Server:
    """A server that has the same ports however often it starts. Its log grows in one file."""

    def __init__(
        self, models: Path, folder: Path, options: Mapping[str, object] | None = None, *, name: str = "server"
    ) -> None:
        self.log = folder / f"{name}.log"
        self.models = models
        self.port, self.metrics_port = free_port(), free_port()
        self.address = f"127.0.0.1:{self.port}"
        given = {
            "--models": models,
            "--port": self.port,
            "--metrics-port": self.metrics_port,
            "--device": "cpu",
        }
        words = [str(word) for option in (given | dict(options or {})).items() for word in option]
        self._command = [sys.executable, "-m", "dragoman", "serve", *words]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        try:
            self.wait_until_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def process_id(self) -> int:
        """The main process's id."""
        assert self._process is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Starts the process, and does not wait until it is ready."""
        # gRPC's own lines are no JSON; options of the environment are not those of a test.
        environment = {name: value for name, value in os.environ.items() if "DRAGOMAN_SERVE" not in name}
        environment["GRPC_VERBOSITY"] = "NONE"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )

    def wait_until_ready(self) -> None:
        """Waits until the server takes calls. Raises ServerError where it ends, or takes too long."""
        until = time.monotonic() + START_SECONDS
        while not self.is_serving():
            if not self.is_alive or time.monotonic() > until:
                what = f"was not ready after {START_SECONDS:.0f} s" if self.is_alive else "ended"
                raise ServerError(f"the server {what}:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.05)

    def is_serving(self) -> bool:
        """Whether the server takes calls."""
        try:
            return self.metric("dragoman_serving") == 1
        except (OSError, HTTPException):
            return False

    def metric(self, name: str, **labels: str) -> float:
        """The sum of all samples of that name that have these labels. Raises OSError."""
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=30) as response:
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
        """Ends the process by SIGKILL."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def stop(self) -> int | None:
        """Ends the process by SIGTERM, so that it drains. Its exit code; None where it had to be killed."""
        if self._process is None:
            return None
        self.signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def entries(self) -> list[dict[str, object]]:
        """The lines of the log. Raises ValueError for one that is no JSON."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@contextmanager
def running_server(bundle: Path, key: str, options: Mapping[str, object]) -> Iterator[Server]:
    """A server of nothing but the bundle, whose NAME/VERSION is `key`, that turns nobody away.

    Raises ServerError.
    """
    with TemporaryDirectory(prefix="dragoman-benchmark-") as folder:
        models = Path(folder) / "models"
        (models / key).parent.mkdir(parents=True)
        (models / key).symlink_to(bundle.resolve(), target_is_directory=True)
        admitted = {"--max-calls": MAX_CALLS, "--max-queue": MAX_CALLS, "--drain-seconds": 5}
        with Server(models, Path(folder), admitted | dict(options)) as server:
            yield server


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port
