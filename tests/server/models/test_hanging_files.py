"""Files that do not answer hold up only the thread that reads them: no later reload, no drain, no exit."""

import asyncio
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from tests.server.access import Certified, certify
from tests.server.calls import reason_of, until
from tests.server.conftest import StartProcess, StartServer
from tests.server.late_file import HANGING, hang, make_late
from tests.server.models.test_reload import ask, write

from dragoman import AsyncClient
from dragoman_server.certificate import Certificate


async def test_a_pipe_in_a_manifest_s_place_is_refused(start_server: StartServer, tmp_path: Path) -> None:
    write(tmp_path, "1")
    running = await start_server(models=tmp_path)
    (tmp_path / "de-en" / "3").mkdir()
    os.mkfifo(tmp_path / "de-en" / "3" / "manifest.json")
    write(tmp_path, "2")
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
    write(tmp_path, "1")
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
    write(tmp_path, "2")
    monkeypatch.setattr(running.server, "_config", replace(running.server._config, max_reload_seconds=60.0))
    await running.server.reload()
    assert await ask(running) == "2"
    assert running.metric("dragoman_last_reload_successful") == 1
    waiting.write_text("")


async def test_tokens_that_hang_stay_as_they_were_and_the_models_are_read(
    start_server: StartServer, tmp_path: Path, tokens: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = tmp_path / "models"
    write(models, "1")
    running = await start_server(models=models, tokens=tokens, max_reload_seconds=1.0)
    names = running.server._callers._names
    hang(monkeypatch)
    pipe = make_late(tokens)
    write(models, "2")
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
        options = ("--models", str(tmp_path / "models"), "--tokens", str(tokens), "--port", "0")
        server = start_process(*options, "--drain-seconds", "1", environment=HANGING)
        with pipe.open("w"):
            server.process.terminate()
            server.wait_for("stopping before the models are loaded")
            assert server.end()[0] == 0
        pipe.unlink()
