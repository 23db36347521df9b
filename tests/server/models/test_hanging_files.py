"""Files and machines that hang hold up only who waits for them: no reload, no drain, no job of others."""

import asyncio
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.clients.jobs.running import Listener
from tests.server.access import Certified, certify
from tests.server.calls import reason_of, until
from tests.server.conftest import StartProcess, StartServer
from tests.server.copying_bundle import write_bundle
from tests.server.models.test_reload import ask
from tests.server.server_process import HANGING, hang, make_late

from dragoman import AsyncClient, Client, Settings, UnavailableError
from dragoman.jobs import FileJob
from dragoman_server.certificate import Certificate


async def test_a_pipe_in_a_manifest_s_place_is_refused(start_server: StartServer, tmp_path: Path) -> None:
    write_bundle(tmp_path, "de-en/1")
    running = await start_server(models=tmp_path)
    (tmp_path / "de-en" / "3").mkdir()
    os.mkfifo(tmp_path / "de-en" / "3" / "manifest.json")
    write_bundle(tmp_path, "de-en/2")
    await running.server.reload()
    assert await ask(running) == "2"
    assert running.metric("dragoman_refused_bundles") == 1
    assert running.metric("dragoman_last_reload_successful") == 1


async def test_a_reload_that_takes_too_long_is_given_up_and_told(
    start_server: StartServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    write_bundle(tmp_path, "de-en/1")
    running = await start_server(models=tmp_path, max_reload_seconds=0.2)
    hang(monkeypatch)
    pipe = make_late(tmp_path / "de-en" / "2" / "manifest.json")
    await running.server.reload()
    assert running.metric("dragoman_last_reload_successful") == 0
    assert "could not be read within 0.2 seconds" in reason_of(caplog, "not reloaded")
    assert await ask(running) == "1"
    # It still hangs, and whatever is there beside it is served as soon as it is out of the way.
    waiting = pipe.rename(tmp_path / "pipe")
    (tmp_path / "de-en" / "2").rmdir()
    write_bundle(tmp_path, "de-en/2")
    monkeypatch.setattr(running.server, "_config", replace(running.server._config, max_reload_seconds=60.0))
    await running.server.reload()
    assert await ask(running) == "2"
    assert running.metric("dragoman_last_reload_successful") == 1
    waiting.write_text("")


async def test_tokens_that_hang_stay_as_they_were_and_the_models_are_read(
    start_server: StartServer, tmp_path: Path, tokens: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = tmp_path / "models"
    write_bundle(models, "de-en/1")
    running = await start_server(models=models, tokens=tokens, max_reload_seconds=1.0)
    names = running.server._callers._names
    hang(monkeypatch)
    pipe = make_late(tokens)
    write_bundle(models, "de-en/2")
    await running.server.reload()
    assert running.metric("dragoman_last_reload_successful") == 0
    assert running.metric("dragoman_model_info", version="2") == 1
    assert running.server._callers._names is names
    tokens.write_text("eve 0123456789abcdef0123\n")
    await asyncio.to_thread(pipe.write_text, "")
    # What was read too late is not used, however late it comes.
    await asyncio.sleep(0.1)
    assert running.server._callers._names is names


async def told(caplog: pytest.LogCaptureFixture) -> None:
    """Until a certificate could not be renewed."""
    await until(lambda: any(record.message == "certificate not renewed" for record in caplog.records))


async def test_a_certificate_that_hangs_keeps_no_connection_waiting(
    start_server: StartServer,
    tmp_path: Path,
    certified: Certified,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("dragoman_server.certificate.LOOK_SECONDS", 0.02)
    monkeypatch.setattr("dragoman_server.certificate.MAX_LOOK_SECONDS", 0.1)
    running = await start_server(host="127.0.0.1", **certified.files)
    address = f"127.0.0.1:{running.server.port}"
    goes_on = threading.Event()
    look = Certificate._look

    def look_late(certificate: Certificate) -> list[tuple[int, int, int] | None]:
        goes_on.wait()
        return look(certificate)

    monkeypatch.setattr(Certificate, "_look", look_late)
    await told(caplog)
    for _ in range(3):
        async with AsyncClient(address, credentials=certified.roots) as client:
            await client.models()
    assert running.metric("dragoman_last_reload_successful") == 0
    failures = [record for record in caplog.records if record.message == "certificate not renewed"]
    assert len(failures) == 1
    renewed = certify(tmp_path, "127.0.0.1")
    goes_on.set()
    await until(lambda: running.metric("dragoman_last_reload_successful") == 1)
    async with AsyncClient(address, credentials=renewed.roots) as client:
        await client.models()
    assert running.metric("dragoman_last_reload_successful") == 1


@pytest.mark.parametrize("name", ["tls_certificate", "tls_key"])
async def test_a_pipe_in_a_certificate_s_place_is_told(
    start_server: StartServer,
    certified: Certified,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.setattr("dragoman_server.certificate.LOOK_SECONDS", 0.02)
    running = await start_server(host="127.0.0.1", **certified.files)
    path: Path = getattr(certified, name)
    path.unlink()
    os.mkfifo(path)
    await told(caplog)
    async with AsyncClient(f"127.0.0.1:{running.server.port}", credentials=certified.roots) as client:
        await client.models()
    record = [record for record in caplog.records if record.message == "certificate not renewed"][-1]
    assert record.reason == f"{path} can't be read: it is no regular file"


def test_a_server_ends_though_it_hangs(start_process: StartProcess, tmp_path: Path, tokens: Path) -> None:
    for late in (tmp_path / "models" / "de-en" / "1" / "manifest.json", tokens):
        late.parent.mkdir(parents=True, exist_ok=True)
        pipe = make_late(late)
        options = ("--tokens", tokens, "--drain-seconds", 1)
        server = start_process(tmp_path / "models", *options, environment=HANGING)
        with pipe.open("w"):
            server.process.terminate()
            server.wait_for("stopping before the models are loaded")
            assert server.end()[0] == 0
        pipe.unlink()


PING_SECONDS = 0.5
MOST_SECONDS = 30.0
"""As docs/guide/files.md has it."""


@pytest.mark.long
def test_others_do_its_work_meanwhile(slow_models: Path, start_process: StartProcess, tmp_path: Path) -> None:
    servers = [start_process(slow_models, "--threads", 1) for _ in range(2)]
    source, output = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("".join(f"zeile nummer {'x' * (number % 7)}\n" for number in range(600)))
    job = FileJob(source, output, Settings(source="de", target="en"), streams=2, window=8)
    goes_on = threading.Timer(MOST_SECONDS, lambda: servers[1].process.send_signal(signal.SIGCONT))

    def stop() -> None:
        servers[1].process.send_signal(signal.SIGSTOP)
        goes_on.start()

    listener = Listener(stop)
    try:
        with Client([each.address for each in servers], ping_seconds=PING_SECONDS) as client:
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
    server = start_process(slow_models, "--threads", 1)
    with Client(server.address, ping_seconds=PING_SECONDS) as client:
        client.translate(["eins"], source="de", target="en")
        server.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(UnavailableError):
                client.translate(["zwei"], source="de", target="en")
        finally:
            server.process.send_signal(signal.SIGCONT)
