"""A real Prometheus scrapes a real server under load: every expression of dashboard and rules is asked."""

import itertools
import json
import math
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml
from tests.deploy.conftest import ROOT, Tree
from tests.server.conftest import free_port
from tests.server.copying_bundle import write_bundle
from tests.server.server_process import ServerProcess

from dragoman import Client, DragomanError

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        shutil.which("prometheus") is None, reason="there is no Prometheus: apt-get install prometheus"
    ),
]

SCRAPE_TIME = "400ms"
CHOSEN = {"$instance": ".*", "$model": ".*", "$__rate_interval": "4s"}
"""As Grafana fills an expression in where everything is chosen."""
NEVER = {
    # Models are loaded on demand where --max-loaded-models says so.
    "Load time, p95",
    "Loads on demand",
}
"""Panels that show nothing of this server, or nothing but zero."""


class Prometheus:
    """One that runs."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, what: str, **parameters: str) -> Any:
        with urlopen(f"{self._url}/api/v1/{what}?{urlencode(parameters)}", timeout=30) as response:
            return json.load(response)["data"]

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """What an expression is now, with the labels of each value."""
        for variable, value in CHOSEN.items():
            expression = expression.replace(variable, value)
        found = self.get("query", query=expression)
        if found["resultType"] == "scalar":
            return [({}, float(found["result"][1]))]
        return [(each["metric"], float(each["value"][1])) for each in found["result"]]

    def has_data(self, expression: str) -> bool:
        return any(math.isfinite(value) for _, value in self.query(expression))


@contextmanager
def running_prometheus(metrics_port: int, folder: Path) -> Iterator[Prometheus]:
    """One that scrapes that port, with the rules that are deployed."""
    times = dict.fromkeys(("scrape_interval", "scrape_timeout", "evaluation_interval"), SCRAPE_TIME)
    job = {"job_name": "dragoman", "static_configs": [{"targets": [f"127.0.0.1:{metrics_port}"]}]}
    rules = [str(ROOT / "deploy/prometheus/rules.yml")]
    config = folder / "prometheus.yml"
    config.write_text(yaml.safe_dump({"global": times, "rule_files": rules, "scrape_configs": [job]}))
    address = f"127.0.0.1:{free_port()}"
    options = [f"--storage.tsdb.path={folder}/data", f"--web.listen-address={address}"]
    process = subprocess.Popen(["prometheus", f"--config.file={config}", *options])
    until = time.monotonic() + 60
    try:
        while True:
            try:
                urlopen(f"http://{address}/-/ready", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, "Prometheus ended"
                assert time.monotonic() < until, "Prometheus did not start"
                time.sleep(0.1)
        yield Prometheus(f"http://{address}")
    finally:
        process.terminate()
        process.wait()


def call_until(is_over: threading.Event, address: str) -> None:
    """Callers with a text or many, one whose deadline is out of reach, and a batch job beside them."""
    with Client(address) as client, ThreadPoolExecutor(4) as hands:
        languages = {"source": "de", "target": "en"}

        def call(number: int) -> None:
            texts = ["wort " * (1 + number % 9)] * (1 + number % 3 * 6)
            timeout = 0.05 if number % 5 == 4 else 30.0
            try:
                client.translate(texts, timeout_seconds=timeout, **languages)
            except DragomanError:
                assert timeout < 1

        def run_job() -> None:
            texts = itertools.takewhile(goes_on, itertools.repeat("ja nein"))
            for _ in client.translate_stream(enumerate(texts), **languages):
                pass

        def goes_on(_: str) -> bool:
            time.sleep(0.005)
            return not is_over.is_set()

        job = hands.submit(run_job)
        number = itertools.count()
        while not is_over.is_set():
            list(hands.map(call, itertools.islice(number, 6)))
        job.result()


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Of a server that has been under load for some seconds, and still is."""
    folder = tmp_path_factory.mktemp("watched")
    write_bundle(folder / "models", slowness=100)
    metrics_port = free_port()
    is_over = threading.Event()
    with (
        ServerProcess(folder / "models", "--threads", 2, "--metrics-port", metrics_port) as server,
        running_prometheus(metrics_port, folder) as prometheus,
        ThreadPoolExecutor(1) as hands,
    ):
        calling = hands.submit(call_until, is_over, server.address)
        try:
            time.sleep(4)
            server.process.send_signal(signal.SIGHUP)
            time.sleep(2)
            yield prometheus
        finally:
            is_over.set()
            calling.result(60)


def name(legend: str, labels: dict[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda label: labels.get(label[1], ""), legend)


def test_every_panel_has_data(watched: Prometheus, panels: list[Tree]) -> None:
    assert len(panels) > 30
    asked = [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]
    empty = {title for title, expression in asked if not watched.has_data(expression)}
    assert empty <= NEVER


def test_the_three_questions_have_answers(watched: Prometheus, panels: list[Tree]) -> None:
    targets = {panel["title"]: panel["targets"] for panel in panels}

    def values(title: str) -> dict[str, float]:
        """By what Grafana calls a series."""
        return {
            name(target["legendFormat"], labels): value
            for target in targets[title]
            for labels, value in watched.query(target["expr"])
        }

    busy = values("Busy share of each engine")
    assert len(busy) == 2
    assert all(0 < share < 1.2 for share in busy.values())
    assert sum(values("Refusals").values()) > 0
    load = values("Rows in use, and load")
    assert 0 < load["de-en/1 interactive load"] < 1.2
    room = values("Requests, and how many p99 allows")
    assert room["de-en/1 now"] > 0
    assert room["de-en/1 p99 at 1 s, estimate"] >= 0
    stages = watched.query(targets["Stages: p50, p95, p99"][0]["expr"])
    assert {(labels["stage"], labels["priority"]) for labels, _ in stages} == {
        (stage, priority)
        for stage in ("text", "queue", "encode", "decode", "request")
        for priority in ("interactive", "bulk")
    }
    # The copying model answers a token with a token.
    assert 0.9 < values("Length ratio")["de-en/1, median"] < 1.1


def test_reloads_are_marked_at_their_time(watched: Prometheus, dashboard: Tree) -> None:
    [annotation] = dashboard["annotations"]["list"]
    [(_, moment_ms)] = watched.query(annotation["expr"])
    assert abs(moment_ms / 1000 - time.time()) < 300


def test_every_rule_is_evaluated(watched: Prometheus, rules: list[Tree]) -> None:
    known = [rule for group in watched.get("rules")["groups"] for rule in group["rules"]]
    assert len(known) == len(rules)
    assert {rule["health"] for rule in known} == {"ok"}
    for rule in rules:
        # Those over days, too: all that there is counts.
        if "record" in rule:
            assert watched.has_data(rule["record"]), rule["record"]
