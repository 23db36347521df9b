"""A `dragoman translate-file` over servers that have something happen to them."""

import hashlib
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.drill.drill import Drill
from benchmarks.drill.servers import Server

JOB_SECONDS = 1800.0
"""Far longer than any job takes: one that hangs is a broken promise, too."""


class Job:
    """A running `dragoman translate-file`."""

    def __init__(self, name: str, output: Path, log: Path, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.code: int | None = None
        self._output = output
        self._log = log
        self._process = process
        self._started_at = time.monotonic()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def has_begun(self) -> bool:
        """Whether it has opened its output."""
        return self._output.with_name(self._output.name + ".progress.json").exists()

    def wait(self, seconds: float) -> float:
        """Until it ends, at most so long; how long it took."""
        try:
            self.code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        return time.monotonic() - self._started_at

    def end(self) -> None:
        """Kills it where it still runs."""
        if self.is_running:
            self._process.kill()
            self._process.wait()

    def told(self) -> str:
        """The last line it wrote."""
        return (self._log.read_text().splitlines() or [""])[-1]

    def digest(self) -> str:
        """Of its output; empty where there is none."""
        if not self._output.exists():
            return ""
        return hashlib.sha256(self._output.read_bytes()).hexdigest()[:16]


def start_job(drill: Drill, servers: list[Server], source: Path, name: str, num_streams: int) -> Job:
    output, log = drill.folder / f"{name}.out", drill.folder / f"{name}.log"
    command = [sys.executable, "-m", "dragoman", "translate-file"]
    command += ["--server", ",".join(server.address for server in servers), "--streams", str(num_streams)]
    command += [
        "--from",
        drill.source,
        "--to",
        drill.target,
        "--model",
        drill.model,
        str(source),
        str(output),
    ]
    with log.open("wb") as stream:
        return Job(name, output, log, subprocess.Popen(command, stdout=stream, stderr=stream))
