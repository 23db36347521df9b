"""`python -m benchmarks.doors` on the toy model, with little load."""

import subprocess
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event, Thread
from typing import Any


def test_callers_are_answered_with_each_load(benchmark: Callable[..., Any], toy: Any) -> None:
    ran = benchmark(
        *("doors", "--bundle", toy.bundle, "--input", toy.source, "--beam", 2, "--repeats", 1),
        *("--per-second", 20, "--seconds", 1, "--idle", 5, "--refused", 20),
    )
    assert [row["load"] for row in ran.results["rows"]] == [
        "no load",
        "load on another server",
        "load on their server",
    ]
    for row in ran.results["rows"]:
        assert row["requests"] > 0
        assert 0 < row["p50"] <= row["p99"]
    assert ran.results["rows"][0]["times"] == 1
    # What was sent, and not what was asked for: never more, and nothing where there is no load.
    rates = [row["http_per_second"] for row in ran.results["rows"]]
    assert rates[0] == 0
    assert all(0 < rate <= 25 for rate in rates[1:])
    assert "gRPC beside HTTP" in ran.markdown


class Accepting(BaseHTTPRequestHandler):
    """Has something for everybody."""

    asked = Event()

    def do_POST(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.asked.set()

    do_GET = do_POST


def test_load_that_is_not_refused_is_no_load() -> None:
    with HTTPServer(("127.0.0.1", 0), Accepting) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with subprocess.Popen(
            [sys.executable, "-m", "benchmarks.doors.http_load", str(server.server_port), "0", "20"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as load:
            assert Accepting.asked.wait(60)
            said, error = load.communicate(timeout=60)
        server.shutdown()
    assert load.returncode != 0
    assert said == "ready\n"
    assert "was answered with 200 and not refused" in error
