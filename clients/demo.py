"""The whole path in one minute: starts a server with the shipped models, translates German, ends the server.

    python clients/demo.py [MODELS]

Exit code 0, or 1 with what went wrong: the end of the server's log where it does not come up.
"""

import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman import Client, DeadlineExceededError, UnavailableError

MODELS = Path(__file__).resolve().parent.parent / "models"
START_SECONDS = 180.0
STOP_SECONDS = 15.0
DRAGOMAN = [sys.executable, "-m", "dragoman"]

TEXTS = [
    "Guten Morgen. Wie geht es dir heute?\nIch habe den Schlüssel zu Hause vergessen.",
    "Wo ist der nächste Bahnhof?",
    "Wir sollten jetzt gehen, sonst verpassen wir den letzten Zug.",
]
PICTURED = "Meine Schwester hat das Haus verkauft."


def main() -> int:
    """Runs the demo and returns the exit code."""
    try:
        with running_server(Path(sys.argv[1]) if sys.argv[1:] else MODELS) as address:
            for arguments in (
                ["models"],
                ["translate", "--from", "de", "--to", "en", *TEXTS],
                ["translate", "--from", "de", "--to", "en", "--alignments", PICTURED],
            ):
                print(f"$ dragoman {shlex.join(arguments)}", flush=True)
                subprocess.run(
                    [*DRAGOMAN, *arguments], env=os.environ | {"DRAGOMAN_SERVER": address}, check=True
                )
                print()
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(error)
        return 1
    except KeyboardInterrupt:
        print("Interrupted.")
        return 130
    command = os.path.relpath(Path(sys.executable).with_name("dragoman"))
    print(f"The server has ended. Start one of your own: {command} serve --models models --http-port 8080")
    print("Then http://localhost:8080 has a page.")
    return 0


@contextmanager
def running_server(models: Path) -> Iterator[str]:
    """The address of a server on a free port of loopback, ready for calls, which is ended in any case.

    Raises RuntimeError with the end of its log where it does not come up.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    arguments = ["serve", "--models", str(models), "--host", "127.0.0.1", "--port", address.split(":")[1]]
    print(f"$ dragoman {shlex.join(arguments)}\n", flush=True)
    command = [*DRAGOMAN, *arguments, "--metrics-port", "0", "--log-format", "text"]
    with tempfile.TemporaryFile() as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            wait_until_serving(address, process, log.fileno())
            yield address
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def wait_until_serving(address: str, process: "subprocess.Popen[bytes]", log: int) -> None:
    """Asks for the server's health until it is good. Raises RuntimeError with the end of its log."""
    deadline = time.monotonic() + START_SECONDS
    with Client(address, timeout_seconds=5) as client:
        while process.poll() is None and time.monotonic() < deadline:
            try:
                if client.health():
                    return
            except (UnavailableError, DeadlineExceededError):
                pass
            time.sleep(0.1)
    end = os.pread(log, 1 << 16, 0).decode(errors="replace").splitlines()[-15:]
    raise RuntimeError("\n".join(["The server did not come up. The end of its log:", *end]))


if __name__ == "__main__":
    sys.exit(main())
