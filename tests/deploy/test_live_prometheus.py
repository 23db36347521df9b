"""A real Prometheus scrapes a real server under load: every expression of dashboard and rules is asked."""

import itertools
import math
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.deploy.panels import Panel, read_annotations, read_panels
from tests.deploy.prometheus import Prometheus, running_prometheus
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

SCRAPE_SECONDS = 0.4
RATE_INTERVAL = "4s"
NEVER = {
    # Models are loaded on demand where --max-loaded-models says so.
    "Load time, p95",
    "Loads on demand",
}
"""Panels that show nothing of this server, or nothing but zero."""


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
    options = ("--models", folder / "models", "--port", 0, "--threads", 2, "--metrics-port", metrics_port)
    server = ServerProcess(*map(str, options), environment={})
    is_over = threading.Event()
    try:
        address = f"localhost:{server.wait_for('ready')['port']}"
        with (
            running_prometheus(
                f"127.0.0.1:{metrics_port}", folder, scrape_seconds=SCRAPE_SECONDS
            ) as prometheus,
            ThreadPoolExecutor(1) as hands,
        ):
            calling = hands.submit(call_until, is_over, address)
            try:
                time.sleep(4)
                server.process.send_signal(signal.SIGHUP)
                time.sleep(2)
                yield prometheus
            finally:
                is_over.set()
                calling.result(60)
    finally:
        server.kill()


def has_data(prometheus: Prometheus, expression: str) -> bool:
    return any(math.isfinite(value) for series in prometheus.query(expression) for value in series.values)


def test_every_panel_has_data(watched: Prometheus) -> None:
    panels = read_panels(RATE_INTERVAL)
    assert len(panels) > 30
    empty = {
        (panel.title, target.legend)
        for panel in panels
        for target in panel.targets
        if not has_data(watched, target.expression)
    }
    assert {title for title, _ in empty} <= NEVER, empty


def test_the_three_questions_have_answers(watched: Prometheus) -> None:
    panels = {panel.title: panel for panel in read_panels(RATE_INTERVAL)}

    def values(title: str) -> dict[str, float]:
        panel: Panel = panels[title]
        return {
            target.name(series.labels): series.values[0]
            for target in panel.targets
            for series in watched.query(target.expression)
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
    stages = watched.query(panels["Stages: p50, p95, p99"].targets[0].expression)
    assert {(each.labels["stage"], each.labels["priority"]) for each in stages} == {
        (stage, priority)
        for stage in ("text", "queue", "encode", "decode", "request")
        for priority in ("interactive", "bulk")
    }
    # The copying model answers a token with a token.
    assert 0.9 < values("Length ratio")["de-en/1, median"] < 1.1


def test_reloads_are_marked_at_their_time(watched: Prometheus) -> None:
    [expression] = read_annotations(RATE_INTERVAL)
    [reload] = watched.query(expression)
    assert abs(reload.values[0] / 1000 - time.time()) < 300


def test_every_rule_is_evaluated(watched: Prometheus, rules: list[dict[str, Any]]) -> None:
    known = watched.rules()
    assert len(known) == len(rules)
    assert {rule["health"] for rule in known} == {"ok"}
    for rule in rules:
        # Those over days, too: all that there is counts.
        if "record" in rule:
            assert has_data(watched, rule["record"]), rule["record"]
