"""A server that is stopped, as a machine that hangs: all that tells its callers is that it is silent."""

import signal
import threading
from pathlib import Path

import pytest
from tests.clients.jobs.running import Listener
from tests.server.conftest import StartProcess

from dragoman import Client, Settings, UnavailableError
from dragoman.jobs import FileJob

PING_SECONDS = 0.5
MOST_SECONDS = 30.0
"""As docs/guide/files.md has it."""
OPTIONS = ("--port", "0", "--threads", "1")


@pytest.mark.long
def test_others_do_its_work_meanwhile(slow_models: Path, start_process: StartProcess, tmp_path: Path) -> None:
    servers = [start_process("--models", str(slow_models), *OPTIONS) for _ in range(2)]
    addresses = [f"127.0.0.1:{server.wait_for('ready')['port']}" for server in servers]
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("".join(f"zeile nummer {'x' * (number % 7)}\n" for number in range(600)))
    job = FileJob(source, output, Settings(source="de", target="en"), streams=2, window=8)
    goes_on = threading.Timer(MOST_SECONDS, lambda: servers[1].process.send_signal(signal.SIGCONT))

    def stop() -> None:
        servers[1].process.send_signal(signal.SIGSTOP)
        goes_on.start()

    listener = Listener(stop)
    try:
        with Client(addresses, ping_seconds=PING_SECONDS) as client:
            job.run(client, listener)
        # It was noticed while the server was stopped: not because it went on.
        assert goes_on.is_alive()
    finally:
        goes_on.cancel()
        servers[1].process.send_signal(signal.SIGCONT)
    assert output.read_text() == source.read_text()
    assert listener.errors
    assert all(isinstance(error, UnavailableError) for error in listener.errors)


@pytest.mark.long
def test_a_call_fails_once_pings_tell(slow_models: Path, start_process: StartProcess) -> None:
    server = start_process("--models", str(slow_models), *OPTIONS)
    address = f"127.0.0.1:{server.wait_for('ready')['port']}"
    with Client(address, ping_seconds=PING_SECONDS) as client:
        client.translate(["eins"], source="de", target="en")
        server.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(UnavailableError):
                client.translate(["zwei"], source="de", target="en")
        finally:
            server.process.send_signal(signal.SIGCONT)
