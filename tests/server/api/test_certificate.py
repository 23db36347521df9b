"""A server's certificate: renewed while it serves, and the port over it."""

from pathlib import Path

import pytest
import trustme
from tests.server.access import Certified, certify
from tests.server.conftest import StartServer

from dragoman import AsyncClient
from dragoman_server.config import ServerConfig
from dragoman_server.server import PortError, Server


async def test_a_renewed_certificate_is_taken_at_the_next_connection(
    start_server: StartServer, tmp_path: Path, certified: Certified, caplog: pytest.LogCaptureFixture
) -> None:
    running = await start_server(
        host="127.0.0.1", tls_certificate=certified.tls_certificate, tls_key=certified.tls_key
    )
    address = f"127.0.0.1:{running.server.port}"
    async with AsyncClient(address, credentials=certified.roots) as client:
        await client.models()
        renewed = certify(tmp_path, "127.0.0.1")
        async with AsyncClient(address, credentials=renewed.roots) as other:
            await other.models()
        await client.models()
        # Half of it is new, as for a moment in a renewal: what was there is kept.
        renewed.tls_key.write_bytes(trustme.CA().issue_cert("127.0.0.1").private_key_pem.bytes())
        for _ in range(2):
            async with AsyncClient(address, credentials=renewed.roots) as other:
                await other.models()
        renewed.tls_key.unlink()
        async with AsyncClient(address, credentials=renewed.roots) as other:
            await other.models()
    failures = [record for record in caplog.records if record.message == "certificate not renewed"]
    assert len(failures) == 2
    assert running.metric("dragoman_last_reload_successful") == 0
    whole = certify(tmp_path, "127.0.0.1")
    async with AsyncClient(address, credentials=whole.roots) as client:
        await client.models()
    assert running.metric("dragoman_last_reload_successful") == 1


async def test_a_port_that_is_taken_is_told_over_tls_too(
    start_server: StartServer, models: Path, certified: Certified
) -> None:
    running = await start_server(host="127.0.0.1")
    config = ServerConfig(
        models=models,
        port=running.server.port,
        metrics_port=0,
        tls_certificate=certified.tls_certificate,
        tls_key=certified.tls_key,
    )
    with pytest.raises(PortError, match="Address already in use"):
        await Server(config).start()
