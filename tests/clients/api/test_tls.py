"""A server that is reached over TLS, as behind a proxy: by its address alone, or with other roots."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
import trustme
from tests.clients.conftest import ScriptedServer, certified_server

import dragoman
from dragoman import AsyncClient, Client

DE_EN = {"source": "de", "target": "en"}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server(authority: trustme.CA) -> Iterator[ScriptedServer]:
    with certified_server(authority, "127.0.0.1") as certified:
        yield certified


@pytest.fixture
def roots(authority: trustme.CA) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(authority.cert_pem.bytes())


@pytest.mark.parametrize("scheme", ["", "grpcs://"])
def test_given_roots_are_trusted(server: ScriptedServer, roots: grpc.ChannelCredentials, scheme: str) -> None:
    with Client(scheme + server.address, credentials=roots) as client:
        assert client.translate(["ja"], **DE_EN)[0].text == "JA"


async def test_so_does_the_async_client(server: ScriptedServer, roots: grpc.ChannelCredentials) -> None:
    async with AsyncClient(f"grpcs://{server.address}", credentials=roots) as client:
        assert (await client.translate(["ja"], **DE_EN))[0].text == "JA"
        streamed = [result async for result in client.translate_stream([(1, "nein")], **DE_EN)]
        assert streamed[0].translation.text == "NEIN"


def run_models(address: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: gRPC reads its variables once."""
    return subprocess.run(
        [sys.executable, "-m", "dragoman", "models", "--server", address, *options],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_command_reaches_it_too_unless_its_certificate_is_for_another_name(
    server: ScriptedServer, authority: trustme.CA, tmp_path: Path
) -> None:
    trusted = str(tmp_path / "roots.pem")
    authority.cert_pem.write_to_path(trusted)
    address = f"grpcs://{server.address}"
    result = run_models(address, "--json", GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=trusted)
    assert result.returncode == 0, result.stderr
    assert '"de-en"' in result.stdout
    with certified_server(authority, "elsewhere.example") as other:
        result = run_models(f"grpcs://{other.address}", GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=trusted)
    assert "certificate is for another name" in result.stderr


async def test_the_cause_at_one_address_of_a_name_is_not_hidden_by_another(authority: trustme.CA) -> None:
    stranger = grpc.ssl_channel_credentials(trustme.CA().cert_pem.bytes())
    fails = pytest.raises(dragoman.UnavailableError, match="CERTIFICATE_VERIFY_FAILED")
    # The name stands for ::1, too, where nothing listens.
    with certified_server(authority, "localhost") as server:
        address = f"grpcs://localhost:{server.address.rpartition(':')[2]}"
        result = await asyncio.to_thread(run_models, address)
        assert result.returncode == 1
        assert result.stderr.startswith("Error: ")
        assert "CERTIFICATE_VERIFY_FAILED" in result.stderr
        assert "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH" in result.stderr
        assert "Is a server running" not in result.stderr
        for credentials in (None, stranger):
            with Client(address, credentials=credentials) as client:
                for call in (
                    client.models,
                    client.health,
                    lambda: client.translate(["ja"], **DE_EN),
                    lambda: list(client.translate_stream([(1, "ja")], **DE_EN)),
                ):
                    with fails:
                        await asyncio.to_thread(call)
        async with AsyncClient(address) as client:
            with fails:
                await client.models()
            with fails:
                _ = [result async for result in client.translate_stream([(1, "ja")], **DE_EN)]


@pytest.mark.parametrize(("content", "told"), [(None, "can't be read"), ("no PEM", "holds no certificate")])
def test_bad_roots_are_told(server: ScriptedServer, tmp_path: Path, content: str | None, told: str) -> None:
    if content is not None:
        (tmp_path / "roots.pem").write_text(content)
    roots = str(tmp_path / "roots.pem")
    result = run_models(f"grpcs://{server.address}", GRPC_DEFAULT_SSL_ROOTS_FILE_PATH=roots)
    assert result.returncode == 1
    assert result.stderr.startswith(f"Error: GRPC_DEFAULT_SSL_ROOTS_FILE_PATH names '{roots}', which {told}")


def test_grpc_is_silent_for_the_command_alone_and_where_nobody_asks_it() -> None:
    code = "import os, sys; import dragoman; assert 'grpc' not in sys.modules; from dragoman import {}; "
    code += "assert 'grpc' in sys.modules; print(os.environ.get('GRPC_VERBOSITY'))"
    without = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
    for name, environment, told in (
        ("Client", without, "None"),
        ("cli", without, "NONE"),
        ("cli", {**without, "GRPC_VERBOSITY": "INFO"}, "INFO"),
    ):
        command = [sys.executable, "-c", code.format(name)]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert ended.stdout == f"{told}\n"


def test_an_address_without_tls_and_tls_with_a_server_that_has_none_are_told(server: ScriptedServer) -> None:
    assert "it speaks TLS and wants grpcs://HOST:PORT" in run_models(server.address).stderr
    with ScriptedServer() as plain:
        result = run_models(f"grpcs://{plain.address}")
    assert result.stderr.startswith("Error: ")
    assert "give its address without grpcs://" in result.stderr
