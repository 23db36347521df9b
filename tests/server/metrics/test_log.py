"""The log: nobody but the server writes lines of it, and nobody who logs waits for who reads it."""

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.server.conftest import StartProcess
from tests.server.server_process import ServerProcess
from tests.server.wire import go_away_frame, opening, ping_frame, read_frames

from dragoman import Client
from dragoman_server.logs import open_log
from dragoman_server.metrics.process import LogMetrics

FORGED = b'x\n{"message": "FORGED"}\n'


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        os.close(descriptor)


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def test_a_warning_of_python_is_a_line_of_json() -> None:
    code = (
        "import warnings; from dragoman_server.logs import open_log\n"
        "with open_log('json'): warnings.warn('Duplicate name:\\nx')"
    )
    ended = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True)
    (line,) = ended.stderr.splitlines()
    assert "UserWarning: Duplicate name:\nx" in json.loads(line)["message"]


@pytest.mark.parametrize("command", [["-m", "dragoman_server"], ["-m", "dragoman", "serve"]])
def test_no_stranger_writes_lines_of_the_log(models: Path, command: list[str]) -> None:
    with ServerProcess(models, command=[sys.executable, *command]) as server:
        asyncio.run(go_away(server.ports[0]))
        _, rest = server.stop()
    assert [json.loads(line)["message"] for line in rest.splitlines()] == ["draining", "stopped"]


async def go_away(port: int) -> None:
    """Leaves as HTTP/2 lets (RFC 9113, section 6.8), with debug text that looks like a line of the log."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(opening() + go_away_frame(FORGED) + ping_frame(1))
    async with asyncio.timeout(30):
        # Its answer comes once the server has read what stands before.
        async for kind, flags, _ in read_frames(reader):
            if (kind, flags) == (6, 1):
                break
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


def test_a_server_within_a_program_writes_no_lines_of_grpc_either() -> None:
    script = "import os, sys, dragoman_server; print('grpc' in sys.modules, os.environ['GRPC_VERBOSITY'])"
    environment = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    assert ended.stdout.strip() == "False NONE"


def test_translation_goes_on_while_nobody_reads_the_log(start_process: StartProcess, models: Path) -> None:
    server = start_process(models)
    # Some 300 bytes a line: many times what the pipe holds.
    with Client(server.address) as client:
        assert server.process.stderr is not None
        # A page, the least that a pipe can hold.
        fcntl.fcntl(server.process.stderr, fcntl.F_SETPIPE_SZ, 4096)
        for _ in range(100):
            assert client.translate(["Ja."], source="de", target="en")
    server.process.terminate()
    # Nobody reads yet, and it ends all the same.
    assert server.process.wait(timeout=60) == 0


def test_lines_that_find_no_room_are_counted_and_told(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    with open_log("json", descriptor=writing, max_waiting=10) as log:
        logger = logging.getLogger("test")
        # The thread hangs in the first that the pipe does not hold.
        for _ in range(100):
            logger.info("x" * 10_000)
        while log.num_dropped == 0:
            logger.info("x" * 10_000)
        registry = CollectorRegistry()
        registry.register(LogMetrics(log))
        assert registry.get_sample_value("dragoman_log_lines_dropped_total") == log.num_dropped
        events: list[dict[str, Any]] = []
        told = threading.Event()

        def read() -> None:
            with os.fdopen(os.dup(reading)) as stream:
                for line in stream:
                    if "dropped" in line:
                        events.append(json.loads(line))
                        # Some may have been told before the pipe was full.
                        if sum(event["num_lines"] for event in events) == log.num_dropped:
                            told.set()
                            return

        reader = threading.Thread(target=read)
        reader.start()
        assert told.wait(60)
        reader.join()
    assert {event["level"] for event in events} == {"WARNING"}


def test_what_is_logged_before_the_end_is_written(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    with open_log("json", descriptor=writing):
        try:
            raise ValueError("why")
        except ValueError:
            logging.getLogger("test").exception("internal error", extra={"model": "de-en/1"})
    event = json.loads(os.read(reading, 100_000))
    assert (event["message"], event["model"], event["logger"]) == ("internal error", "de-en/1", "test")
    assert "ValueError: why" in event["exc_info"]


def test_a_log_that_is_read_no_more_is_counted_and_harms_nobody() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    log = open_log("text", descriptor=writing)
    for _ in range(3):
        logging.getLogger("test").info("ready")
    log.close()
    assert log.num_dropped == 3
    os.close(writing)


def test_a_field_never_looks_like_a_line_of_its_own(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    with open_log("text", descriptor=writing):
        logging.getLogger("test").info("call", extra={"reason": 'no model "x\n2026-01-01 INFO FORGED"'})
    assert os.read(reading, 10_000).count(b"\n") == 1
