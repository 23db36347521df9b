"""The server as a person starts it: a command in a process of its own."""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.server import server_process

COMMAND = [sys.executable, "-m", "dragoman"]


class ServerProcess(server_process.ServerProcess):
    """A `dragoman serve` on ports that the system chose, up and ready."""

    def __init__(self, models: Path, precision: str, command: Sequence[str] = COMMAND) -> None:
        options = ("--models", str(models), "--port", "0", "--precision", precision)
        super().__init__(*options, command=[*command, "serve"])
        self.address = f"127.0.0.1:{self.wait_for('ready')['port']}"

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.end()[0]
