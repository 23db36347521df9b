"""Callers who must show a certificate, over both doors, and what they are called."""

import asyncio
import os
import ssl
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path

import grpc
import pytest
import trustme
from click.testing import CliRunner
from tests.server.access import ADA, Certified, certify, shows
from tests.server.calls import DE_EN
from tests.server.conftest import RunningServer, StartProcess, StartServer

from dragoman import AsyncClient, AuthenticationError, Client, InvalidRequestError, UnavailableError
from dragoman_server.cli import serve
from dragoman_server.errors import ServerFileError, UnknownCallerError
from dragoman_server.healthcheck import healthcheck
from dragoman_server.service.callers import Callers


@dataclass(frozen=True)
class Shown:
    """A caller's certificate and key, in files."""

    chain: Path
    key: Path

    def credentials(self, server: Certified) -> grpc.ChannelCredentials:
        roots = server.authority.cert_pem.bytes()
        return grpc.ssl_channel_credentials(roots, self.key.read_bytes(), self.chain.read_bytes())


def issue(folder: Path, authority: trustme.CA, *names: str, common_name: str | None = None) -> Shown:
    issued = authority.issue_cert(*names, common_name=common_name)
    shown = Shown(folder / f"{names[0]}.pem", folder / f"{names[0]}.key")
    shown.chain.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    shown.key.write_bytes(issued.private_key_pem.bytes())
    return shown


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "clients.pem"))
    return made


async def start(
    start_server: StartServer, certified: Certified, tmp_path: Path, **config: object
) -> RunningServer:
    return await start_server(
        host="127.0.0.1", tls_client_ca=tmp_path / "clients.pem", **certified.files, **config
    )


async def test_only_a_certificate_of_the_authorities_gets_in_and_it_names_its_caller(
    start_server: StartServer, certified: Certified, tmp_path: Path, authority: trustme.CA
) -> None:
    limits = tmp_path / "limits"
    limits.write_text("ada characters-per-day=3\n")
    running = await start(start_server, certified, tmp_path, caller_limits=limits)
    address = f"127.0.0.1:{running.server.port}"
    ada = issue(tmp_path, authority, "ada@example.org", common_name="ada")
    bob = issue(tmp_path, authority, "bob.example.org")
    for shown, name in ((ada, "ada"), (bob, "bob.example.org")):
        async with AsyncClient(address, credentials=shown.credentials(certified)) as client:
            assert (await client.translate(["Ja."], **DE_EN))[0].text == "Ja."
        assert running.metric("dragoman_caller_characters_total", caller=name) == 3
    async with AsyncClient(address, credentials=ada.credentials(certified)) as client:
        with pytest.raises(Exception, match="ada sends 3 characters, and has had 3 today"):
            await client.translate(["Ja."], **DE_EN)
    stranger = issue(tmp_path, trustme.CA(), "eve.example.org")
    for credentials in (certified.roots, stranger.credentials(certified)):
        async with AsyncClient(address, credentials=credentials, timeout_seconds=5) as client:
            with pytest.raises(UnavailableError):
                await client.models()
            # Not even health is told to whoever has none.
            with pytest.raises(UnavailableError):
                await client.health()


async def test_the_http_door_asks_for_the_same_certificates(
    start_server: StartServer, certified: Certified, tmp_path: Path, authority: trustme.CA
) -> None:
    running = await start(start_server, certified, tmp_path, http_port=0)
    ada = issue(tmp_path, authority, "ada@example.org", common_name="ada")
    assert await fetch(running, certified, ada) == 200
    assert running.metric("dragoman_caller_calls_total", caller="ada") == 1
    for shown in (None, issue(tmp_path, trustme.CA(), "eve.example.org")):
        with pytest.raises(OSError, match=r"certificate required|unknown ca|reset|closed"):
            await fetch(running, certified, shown)


async def fetch(running: RunningServer, certified: Certified, shown: Shown | None) -> int:
    return await asyncio.to_thread(fetch_models, running, certified, shown)


def fetch_models(running: RunningServer, certified: Certified, shown: Shown | None) -> int:
    context = ssl.create_default_context(cadata=certified.authority.cert_pem.bytes().decode())
    if shown is not None:
        context.load_cert_chain(shown.chain, shown.key)
    connection = HTTPSConnection("127.0.0.1", running.server.http_port, context=context, timeout=30)
    try:
        connection.request("GET", "/v1/models")
        return connection.getresponse().status
    finally:
        connection.close()


async def test_with_tokens_a_certificate_alone_is_not_enough(
    start_server: StartServer, certified: Certified, tmp_path: Path, authority: trustme.CA, tokens: Path
) -> None:
    running = await start(start_server, certified, tmp_path, tokens=tokens)
    credentials = issue(tmp_path, authority, "eve.example.org").credentials(certified)
    address = f"127.0.0.1:{running.server.port}"
    async with AsyncClient(address, credentials=credentials) as client:
        with pytest.raises(AuthenticationError):
            await client.models()
    async with AsyncClient(address, credentials=credentials, token=ADA) as client:
        await client.models()
    assert running.metric("dragoman_caller_calls_total", caller="ada") == 1
    assert running.metric("dragoman_caller_calls_total") == 1


@pytest.mark.parametrize(
    ("names", "told"),
    [((), "no name"), (("two words",), "'two words'"), (("*",), r"'\*'"), (("x" * 257,), "letters, digits")],
)
def test_a_certificate_that_names_nobody_is_refused(names: Sequence[str], told: str) -> None:
    with pytest.raises(UnknownCallerError, match=told):
        Callers(None, have_certificates=True).name(None, names)


def test_the_name_is_the_first_and_nothing_without_the_option() -> None:
    names = ("spiffe://example.org/ns/web", "other")
    assert Callers(None, have_certificates=True).identify(shows("x"), names) == names[0]
    assert Callers(None).identify(None, names) is None


def test_commands_and_probe_show_the_certificate_that_the_environment_names(
    start_process: StartProcess, models: Path, tmp_path: Path, authority: trustme.CA
) -> None:
    certified = certify(tmp_path, "127.0.0.1")
    chain, key = str(certified.tls_certificate), str(certified.tls_key)
    tls = ("--tls-certificate", chain, "--tls-key", key, "--tls-client-ca", tmp_path / "clients.pem")
    server = start_process(models, *tls)
    port = str(server.ports[0])
    ada = issue(tmp_path, authority, "ada.example.org")
    environment = {"DRAGOMAN_SERVE_TLS_CERTIFICATE": chain, "DRAGOMAN_SERVE_PORT": port}
    shown = {"DRAGOMAN_CLIENT_CERTIFICATE": str(ada.chain), "DRAGOMAN_CLIENT_KEY": str(ada.key)}
    asked = CliRunner().invoke(healthcheck, [], env=environment)
    assert (asked.exit_code, "does not answer" in asked.output) == (1, True)
    half = CliRunner().invoke(healthcheck, [], env=environment | dict([next(iter(shown.items()))]))
    assert (half.exit_code, "given together" in half.output) == (2, True)
    asked = CliRunner().invoke(healthcheck, [], env=environment | shown)
    assert (asked.exit_code, asked.output.startswith("de-en/1, ")) == (0, True), asked.output
    certified.authority.cert_pem.write_to_path(str(tmp_path / "roots.pem"))
    # gRPC reads its roots once a process.
    environment = os.environ | {"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(tmp_path / "roots.pem")}
    arguments = [sys.executable, "-m", "dragoman", "models", "--server", f"grpcs://127.0.0.1:{port}"]
    for given, code, told in ((shown, 0, "de-en"), (shown | {"DRAGOMAN_CLIENT_KEY": ""}, 1, "set together")):
        ran = subprocess.run(arguments, env=environment | given, capture_output=True, text=True)
        assert (ran.returncode, told in ran.stdout + ran.stderr) == (code, True), ran.stderr


def test_a_certificate_that_could_not_be_shown_is_refused(tmp_path: Path, authority: trustme.CA) -> None:
    ada = issue(tmp_path, authority, "ada.example.org")
    pair = (ada.chain, ada.key)
    with pytest.raises(InvalidRequestError, match="grpcs://"):
        Client("localhost:1", certificate=pair)
    with pytest.raises(InvalidRequestError, match="both given"):
        Client("grpcs://localhost:1", certificate=pair, credentials=grpc.ssl_channel_credentials())
    with pytest.raises(InvalidRequestError, match="nowhere can't be read: No such file"):
        Client("grpcs://localhost:1", certificate=(tmp_path / "nowhere", ada.key))
    (tmp_path / "empty").touch()
    with pytest.raises(InvalidRequestError, match="empty is no PEM file"):
        Client("grpcs://localhost:1", certificate=(ada.chain, tmp_path / "empty"))


async def test_authorities_that_are_none_keep_the_server_from_starting(
    start_server: StartServer, certified: Certified, tmp_path: Path
) -> None:
    ran = CliRunner().invoke(serve, ["--models", "x", "--tls-client-ca", str(tmp_path / "clients.pem")])
    assert (ran.exit_code, "--tls-client-ca needs TLS" in ran.output) == (2, True)
    for content in (None, "nothing", "ä"):
        if content is not None:
            (tmp_path / "clients.pem").write_text(content)
        with pytest.raises(ServerFileError, match=r"clients\.pem can't be read as certificates"):
            await start(start_server, certified, tmp_path)
