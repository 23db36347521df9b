"""A server that is reached over TLS, as behind a proxy: by its address alone, or with other roots."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
import trustme
from tests.clients.conftest import ScriptedServer

import dragoman
from dragoman import AsyncClient, Client

DE_EN = {"source": "de", "target": "en"}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def scripted_server(authority: trustme.CA, name: str) -> ScriptedServer:
    """One on 127.0.0.1 whose certificate is for `name`."""
    own = authority.issue_cert(name)
    pair = (own.private_key_pem.bytes(), own.cert_chain_pems[0].bytes())
    return ScriptedServer(grpc.ssl_server_credentials([pair]))


@pytest.fixture(scope="module")
def server(authority: trustme.CA) -> Iterator[ScriptedServer]:
    scripted = scripted_server(authority, "127.0.0.1")
    yield scripted
    scripted.stop()


@pytest.fixture
def roots(authority: trustme.CA) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(authority.cert_pem.bytes())


@pytest.mark.parametrize("scheme", ["", "grpcs://"])
def test_a_client_trusts_the_roots_it_is_given(
    server: ScriptedServer, roots: grpc.ChannelCredentials, scheme: str
) -> None:
    with Client(scheme + server.address, credentials=roots) as client:
        assert client.translate(["ja"], **DE_EN)[0].text == "JA"


async def test_so_does_the_async_client_in_calls_and_streams(
    server: ScriptedServer, roots: grpc.ChannelCredentials
) -> None:
    async with AsyncClient(f"grpcs://{server.address}", credentials=roots) as client:
        assert (await client.translate(["ja"], **DE_EN))[0].text == "JA"
        streamed = [result async for result in client.translate_stream([(1, "nein")], **DE_EN)]
        assert streamed[0].translation.text == "NEIN"


def test_a_server_that_nobody_vouches_for_is_not_called(server: ScriptedServer) -> None:
    stranger = grpc.ssl_channel_credentials(trustme.CA().cert_pem.bytes())
    with (
        Client(server.address, credentials=stranger, timeout_seconds=5) as client,
        pytest.raises(dragoman.UnavailableError),
    ):
        client.translate(["ja"], **DE_EN)


def test_the_command_line_reaches_it_by_its_address(
    server: ScriptedServer, authority: trustme.CA, tmp_path: Path
) -> None:
    trusted = tmp_path / "roots.pem"
    authority.cert_pem.write_to_path(str(trusted))
    result = subprocess.run(
        [sys.executable, "-m", "dragoman", "models", "--server", f"grpcs://{server.address}", "--json"],
        env={**os.environ, "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(trusted)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert '"de-en"' in result.stdout


def run_models(address: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: gRPC reads its variables once."""
    return subprocess.run(
        [sys.executable, "-m", "dragoman", "models", "--server", address],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_certificate_that_is_not_trusted_is_told(server: ScriptedServer) -> None:
    result = run_models(f"grpcs://{server.address}")
    assert result.returncode == 1
    # gRPC has lines of its own before it.
    assert re.search("^Error: ", result.stderr, re.MULTILINE)
    assert "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH" in result.stderr
    assert "Is a server running" not in result.stderr


def test_a_certificate_for_another_name_is_told(authority: trustme.CA, tmp_path: Path) -> None:
    trusted = tmp_path / "roots.pem"
    authority.cert_pem.write_to_path(str(trusted))
    server = scripted_server(authority, "elsewhere.example")
    result = run_models(f"grpcs://{server.address}", GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=str(trusted))
    server.stop()
    assert "certificate is for another name" in result.stderr


def test_an_address_without_tls_is_told(server: ScriptedServer) -> None:
    assert "it speaks TLS and wants grpcs://HOST:PORT" in run_models(server.address).stderr


def test_tls_with_a_server_that_has_none_is_told() -> None:
    plain = ScriptedServer()
    result = run_models(f"grpcs://{plain.address}")
    plain.stop()
    # gRPC has lines of its own before it.
    assert re.search("^Error: ", result.stderr, re.MULTILINE)
    assert "give its address without grpcs://" in result.stderr
