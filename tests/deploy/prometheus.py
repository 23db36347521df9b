"""A real Prometheus in a process of its own, and what it answers to queries."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "rules.yml"
_START_SECONDS = 60.0


class PrometheusError(RuntimeError):
    """Prometheus is not installed, did not start, or refused a query."""


@dataclass(frozen=True)
class Series:
    """What a query has for one set of labels."""

    labels: dict[str, str]
    values: Sequence[float]


class Prometheus:
    """One that runs."""

    def __init__(self, url: str) -> None:
        self._url = url

    def query(self, expression: str) -> list[Series]:
        """What an expression is now. Raises PrometheusError where it is no PromQL."""
        found = self._get("query", query=expression)["result"]
        if found and not isinstance(found[0], dict):
            # A scalar.
            return [Series({}, [float(found[1])])]
        return [Series(each["metric"], [float(each["value"][1])]) for each in found]

    def rules(self) -> list[dict[str, Any]]:
        """Each rule with its `health`, as it was last evaluated."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def _get(self, what: str, **parameters: object) -> Any:
        url = f"{self._url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise PrometheusError(f"{parameters.get('query')}: {json.load(error)['error']}") from error


@contextmanager
def running_prometheus(target: str, folder: Path, *, scrape_seconds: float) -> Iterator[Prometheus]:
    """Scrapes `target`, HOST:PORT, as the job `dragoman`, with the rules that are deployed.

    Its data are in `folder`. Raises PrometheusError.
    """
    command = shutil.which("prometheus")
    if command is None:
        raise PrometheusError("prometheus is not installed: apt-get install prometheus")
    every = f"{round(scrape_seconds * 1000)}ms"
    config = {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "dragoman", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    options = {
        "config.file": folder / "prometheus.yml",
        "storage.tsdb.path": folder / "data",
        "web.listen-address": f"127.0.0.1:{port}",
    }
    url = f"http://127.0.0.1:{port}"
    log = folder / "prometheus.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [command, *(f"--{name}={value}" for name, value in options.items())], stdout=stream, stderr=stream
        )
    try:
        _await_ready(process, url, log)
        yield Prometheus(url)
    finally:
        process.terminate()
        process.wait()


def _await_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise PrometheusError(f"prometheus did not start:\n{log.read_text()}")
