"""The server as a person starts it: a command in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

COMMAND = [sys.executable, "-m", "dragoman"]


class ServerProcess:
    """A `dragoman serve` on ports that the system chose, up and ready."""

    def __init__(self, models: Path, precision: str, command: Sequence[str] = COMMAND) -> None:
        command = [*command, "serve", "--models", str(models), "--port", "0", "--metrics-port", "0"]
        self.process = subprocess.Popen(
            [*command, "--device", "cpu", "--precision", precision],
            stderr=subprocess.PIPE,
            text=True,
            # gRPC's own lines are no JSON.
            env={**os.environ, "GRPC_VERBOSITY": "NONE"},
        )
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if (entry := json.loads(line))["message"] == "ready":
                self.address = f"127.0.0.1:{entry['port']}"
                return
        raise AssertionError(f"the server ended with {self.process.wait()}")

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(30)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code
