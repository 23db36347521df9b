"""A server's certificate: renewed while it serves, and the port over it."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from tests.server.access import Certified, certify
from tests.server.conftest import StartServer

from dragoman import AsyncClient, UnavailableError
from dragoman_server.config import ServerConfig
from dragoman_server.server import PortError, Server


async def eventually(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():
            await asyncio.sleep(0.01)


async def calls_with(address: str, certified: Certified) -> None:
    """A connection that trusts this certificate alone is answered, or will be soon."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(UnavailableError):
                async with AsyncClient(address, credentials=certified.roots, timeout_seconds=5) as client:
                    await client.models()
                    return


async def test_a_renewed_certificate_is_taken_at_a_later_connection(
    start_server: StartServer,
    tmp_path: Path,
    certified: Certified,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman_server.certificate.LOOK_SECONDS", 0.02)

    def failures() -> int:
        return sum(record.message == "certificate not renewed" for record in caplog.records)

    running = await start_server(host="127.0.0.1", **certified.files)
    address = f"127.0.0.1:{running.server.port}"
    async with AsyncClient(address, credentials=certified.roots) as client:
        await client.models()
        renewed = certify(tmp_path, "127.0.0.1")
        await calls_with(address, renewed)
        # A connection that is open stays.
        await client.models()
    # Half of it is new, as for a moment in a renewal: what was there is kept.
    before = failures()
    renewed.tls_key.write_bytes(trustme.CA().issue_cert("127.0.0.1").private_key_pem.bytes())
    await eventually(lambda: failures() > before)
    await calls_with(address, renewed)
    before = failures()
    renewed.tls_key.unlink()
    await eventually(lambda: failures() > before)
    await calls_with(address, renewed)
    await asyncio.sleep(0.2)
    assert failures() == before + 1, "told once"
    assert running.metric("dragoman_last_reload_successful") == 0
    await calls_with(address, certify(tmp_path, "127.0.0.1"))
    assert running.metric("dragoman_last_reload_successful") == 1


async def test_a_port_that_is_taken_is_told_over_tls_too(
    start_server: StartServer, models: Path, certified: Certified
) -> None:
    running = await start_server(host="127.0.0.1")
    config = ServerConfig(
        models=models,
        port=running.server.port,
        metrics_port=0,
        **certified.files,
    )
    with pytest.raises(PortError, match="Address already in use"):
        await Server(config).start()
