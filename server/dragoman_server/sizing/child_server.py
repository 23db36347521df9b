"""The start and the end of a server in a process of its own, by its log."""

import json
import signal
import subprocess
import time
from pathlib import Path

START_SECONDS = 300.0
STOP_SECONDS = 60.0
_MAX_LOG_CHARACTERS = 2000


class ServerError(RuntimeError):
    """The server did not start, ended on its own, or did not translate."""


def wait_for_port(process: "subprocess.Popen[bytes]", log: Path) -> int:
    """Waits until the server's log says that it is ready, and returns its port.

    Raises ServerError, with the log's end, for a server that ends or is not ready after START_SECONDS.
    """
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        for line in log.read_text().splitlines():
            entry = json.loads(line) if line.startswith("{") and line.endswith("}") else {}
            if entry.get("message") == "ready":
                return int(entry["port"])
        if (code := process.poll()) is not None:
            raise ServerError(f"the server ended with {code}:\n{log.read_text()[-_MAX_LOG_CHARACTERS:]}")
        time.sleep(0.05)
    end = log.read_text()[-_MAX_LOG_CHARACTERS:]
    raise ServerError(f"the server was not ready after {START_SECONDS:.0f} s:\n{end}")


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Asks the server to end by SIGTERM, and kills it after STOP_SECONDS."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
