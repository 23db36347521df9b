"""A `dragoman serve` in a process of its own, and what can be read off it."""

import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.serve.cores import pinned_to
from dragoman_server.sizing.child_server import stop, wait_for_port

_MAX_CALLS = 1_000_000


class ServerProcess:
    """A running server."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        port: int,
        metrics_port: int,
        models: Path,
        http_port: int | None,
    ) -> None:
        self._process = process
        self.process_id = process.pid
        self.metrics_address = f"127.0.0.1:{metrics_port}"
        """Where its metrics are scraped."""
        self.models = models
        """The folder that it serves."""
        self.http_port = http_port
        """Of its HTTP door, if it has one."""
        self.address = f"127.0.0.1:{port}"
        """Where it listens."""

    def reload(self) -> None:
        """Has it read its folder again."""
        self._process.send_signal(signal.SIGHUP)

    def steps_and_rows(self) -> tuple[float, float]:
        """How many decoder steps it has taken and how many rows they had in all."""
        family = self._read_metrics()["dragoman_step_rows"]
        totals = dict.fromkeys(("_count", "_sum"), 0.0)
        for sample in family.samples:
            for suffix in totals:
                totals[suffix] += sample.value if sample.name.endswith(suffix) else 0.0
        return totals["_count"], totals["_sum"]

    def processor_seconds(self) -> float | None:
        """Processor time that it and its engines have used; None where the system does not tell."""
        family = self._read_metrics().get("process_cpu_seconds")
        return None if family is None else family.samples[0].value

    def _read_metrics(self) -> dict[str, Metric]:
        url = f"http://{self.metrics_address}/metrics"
        with urllib.request.urlopen(url, timeout=30) as response:
            text = response.read().decode()
        return {family.name: family for family in text_string_to_metric_families(text)}


@contextmanager
def running_server(
    bundle: Path,
    key: str,
    *,
    mode: str,
    precision: str,
    threads: int,
    max_beam_size: int,
    cores: tuple[int, ...],
    engines_per_process: int | None = None,
    has_http: bool = False,
) -> Iterator[ServerProcess]:
    """A server of nothing but the bundle, whose NAME/VERSION is `key`, on these cores. Raises ServerError.

    It chooses itself how many engines share a process unless `engines_per_process` says so.
    """
    with TemporaryDirectory(prefix="dragoman-benchmark-") as folder:
        models = Path(folder) / "models"
        (models / key).parent.mkdir(parents=True)
        (models / key).symlink_to(bundle.resolve(), target_is_directory=True)
        metrics_port = _free_port()
        options: dict[str, object] = {
            "--models": models,
            "--port": 0,
            "--metrics-port": metrics_port,
            "--device": "cpu",
            "--precision": precision,
            "--threads": threads,
            "--batching": mode,
            "--max-calls": _MAX_CALLS,
            "--max-queue": _MAX_CALLS,
            "--max-beam-size": max_beam_size,
            "--drain-seconds": 5,
        }
        if engines_per_process is not None:
            options["--engines-per-process"] = engines_per_process
        http_port = _free_port() if has_http else None
        if http_port is not None:
            options["--http-port"] = http_port
        command = [sys.executable, "-m", "dragoman", "serve"]
        command += [str(part) for option in options.items() for part in option]
        log = Path(folder) / "server.log"
        with log.open("wb") as stream, pinned_to(cores):
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
        try:
            yield ServerProcess(process, wait_for_port(process, log), metrics_port, models, http_port)
        finally:
            stop(process)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
    return port
