"""Who reaches a server, over what and as whom: TLS, tokens, and what is told where they are wrong."""

import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest
import trustme
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.server.conftest import RunningServer, StartProcess, StartServer
from tests.server.copying_bundle import MANIFEST, write_bundle

from dragoman import AsyncClient, AuthenticationError, Client, InvalidRequestError, UnavailableError
from dragoman.v1 import translation_pb2 as pb
from dragoman_server.callers import Callers, TokenFileError, read_tokens
from dragoman_server.config import ServerConfig
from dragoman_server.errors import UnknownCallerError
from dragoman_server.healthcheck import healthcheck
from dragoman_server.server import PortError, Server

DE_EN = {"source": "de", "target": "en"}
GERMAN = {"source_language": "de", "target_language": "en"}
ADA, BOB = "a" * 16 + "1", "b" * 16 + "2"


@dataclass(frozen=True)
class Certified:
    """A certificate's two files and the authority behind it."""

    authority: trustme.CA
    tls_certificate: Path
    tls_key: Path

    @property
    def roots(self) -> grpc.ChannelCredentials:
        return grpc.ssl_channel_credentials(self.authority.cert_pem.bytes())


def certify(folder: Path, *names: str) -> Certified:
    """Writes a new certificate into the folder, over the one that may be there."""
    authority = trustme.CA()
    own = authority.issue_cert(*names)
    chain, key = folder / "chain.pem", folder / "key.pem"
    chain.write_bytes(b"".join(pem.bytes() for pem in own.cert_chain_pems))
    key.write_bytes(own.private_key_pem.bytes())
    return Certified(authority, chain, key)


@pytest.fixture
def certified(tmp_path: Path) -> Certified:
    return certify(tmp_path, "127.0.0.1")


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"# who calls\n\nada {ADA}\nbob\t{BOB}\n")
    return path


def shows(token: str, scheme: str = "Bearer") -> tuple[tuple[str, str], ...]:
    return (("authorization", f"{scheme} {token}"),)


def test_a_file_of_tokens_says_whose_each_is(tokens: Path) -> None:
    assert read_tokens(tokens) == {ADA: "ada", BOB: "bob"}


def test_a_comment_may_be_indented_and_a_file_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"ada {ADA}\n  #bob {BOB}\n\t# {BOB}\n", encoding="utf-8-sig")
    assert read_tokens(path) == {ADA: "ada"}


def test_a_caller_may_have_two_tokens_while_they_are_changed(tokens: Path) -> None:
    tokens.write_text(f"ada {ADA}\nada {BOB}\nada {ADA}\n")
    callers = Callers(tokens)
    callers.load()
    assert [callers.identify(shows(token)) for token in (ADA, BOB)] == ["ada", "ada"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds no token"),
        ("# nobody\n\n", "holds no token"),
        (f"ada {ADA}\n{BOB}\n", "line 2: 1 words"),
        (f"ada lovelace {ADA}\n", "line 1: 3 words"),
        (
            "ada 123456789012345\n",
            "line 1: the token, behind the name, must be of 16 ASCII characters or more",
        ),
        (f"ada {ADA}ä\n", "line 1: the token"),
        (f"ada {ADA}\x01\n", "line 1: the token"),
        (f"{ADA} ada\n", "line 1: the token"),
        (f"{ADA}{'1' * 60} {BOB}\n", "line 1: what stands first must be a name, of at most 64"),
        (f"ädä {ADA}\n", "line 1: what stands first must be a name"),
        (f"ada {ADA}\nbob {ADA}\n", "line 2: the token is another caller's too"),
    ],
)
def test_a_bad_file_of_tokens_is_refused_by_its_line_and_shows_none(
    tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)
    with pytest.raises(TokenFileError) as caught:
        Callers(path).load()
    assert str(path) in str(caught.value)
    assert told in str(caught.value)
    assert ADA not in str(caught.value)
    assert BOB not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"ada \xff\xfe"])
def test_a_file_of_tokens_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tokens"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TokenFileError, match="tokens can't be read"):
        read_tokens(path)


def test_without_a_file_everybody_may_call() -> None:
    callers = Callers(None)
    callers.load()
    assert callers.identify(None) is None
    assert callers.identify(shows("whatever")) is None


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        (),
        (("x-token", ADA),),
        (("authorization", ADA),),
        shows(ADA, "Basic"),
        shows(ADA[:-1]),
        shows(ADA + "1"),
        shows(ADA.upper()),
        shows(""),
        shows("ada"),
        (("authorization-bin", f"Bearer {ADA}".encode()),),
        (*shows("wrong"), *shows(ADA)),
    ],
)
def test_whoever_shows_no_token_of_the_file_is_nobody(
    tokens: Path, metadata: tuple[tuple[str, str | bytes], ...] | None
) -> None:
    callers = Callers(tokens)
    callers.load()
    with pytest.raises(UnknownCallerError):
        callers.identify(metadata)


def test_the_scheme_is_read_in_any_case(tokens: Path) -> None:
    callers = Callers(tokens)
    callers.load()
    assert callers.identify(shows(BOB, "bearer")) == "bob"


Ask = Callable[[RunningServer, tuple[tuple[str, str], ...]], Awaitable[object]]


async def translate(running: RunningServer, metadata: tuple[tuple[str, str], ...]) -> object:
    return await running.stub.Translate(pb.TranslateRequest(texts=["Ja."], **GERMAN), metadata=metadata)


async def stream(running: RunningServer, metadata: tuple[tuple[str, str], ...]) -> object:
    call = running.stub.TranslateStream(metadata=metadata)
    await call.write(pb.TranslateStreamRequest(config=GERMAN))
    await call.done_writing()
    return [response async for response in call]


async def list_models(running: RunningServer, metadata: tuple[tuple[str, str], ...]) -> object:
    return await running.stub.ListModels(pb.ListModelsRequest(), metadata=metadata)


async def get_model(running: RunningServer, metadata: tuple[tuple[str, str], ...]) -> object:
    return await running.stub.GetModel(pb.GetModelRequest(name="de-en"), metadata=metadata)


@pytest.mark.parametrize("ask", [translate, stream, list_models, get_model])
async def test_a_server_with_tokens_answers_their_callers_and_nobody_else(
    start_server: StartServer, tokens: Path, ask: Ask
) -> None:
    running = await start_server(tokens=tokens)
    await ask(running, shows(ADA))
    for metadata in ((), shows("c" * 20)):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await ask(running, metadata)
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert "authorization: Bearer TOKEN" in str(caught.value.details())
        trailers = dict(caught.value.trailing_metadata())
        assert b"UNKNOWN_CALLER" in bytes(trailers["grpc-status-details-bin"])
    assert running.metric("grpc_server_handled_total", grpc_code="UNAUTHENTICATED") == 2
    assert running.metric("grpc_server_handled_total", grpc_code="OK") == 1


async def test_the_log_says_who_called_and_shows_no_token(
    start_server: StartServer, tokens: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    running = await start_server(tokens=tokens)
    await translate(running, shows(BOB))
    with pytest.raises(grpc.aio.AioRpcError):
        await translate(running, shows("c" * 20))
    calls = [record for record in caplog.records if record.message == "call"]
    told = [(vars(record)["caller"], vars(record)["outcome"]) for record in calls]
    assert told == [("bob", "OK"), (None, "UNAUTHENTICATED")]
    for record in caplog.records:
        assert not any(token in str(vars(record)) for token in (ADA, BOB, "c" * 20))


def test_a_token_that_is_no_text_is_not_in_the_log_either(
    start_process: StartProcess, models: Path, tokens: Path
) -> None:
    server = start_process("--models", str(models), "--port", "0", "--tokens", str(tokens))
    port = int(str(server.wait_for("ready")["port"]))
    with call_in_bytes(port, {b"authorization": b"Bearer " + ADA.encode() + b"\xff"}):
        assert server.wait_for("call")["outcome"] == "UNAUTHENTICATED"
    server.process.terminate()
    _, rest = server.end()
    assert ADA not in rest + str(server.log)


def call_in_bytes(port: int, metadata: dict[bytes, bytes]) -> socket.socket:
    """Calls ListModels with metadata that no client of gRPC would send: HTTP/2 (RFC 9113), byte by byte."""
    headers = {
        b":method": b"POST",
        b":scheme": b"http",
        b":path": b"/dragoman.v1.TranslationService/ListModels",
        b":authority": b"localhost",
        b"te": b"trailers",
        b"content-type": b"application/grpc",
        **metadata,
    }
    # Each literal, without indexing: RFC 7541, section 6.2.2.
    block = b"".join(
        b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in headers.items()
    )

    def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    connection = socket.create_connection(("127.0.0.1", port), 10)
    connection.sendall(
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + frame(4, 0, 0, b"")
        + frame(1, 4, 1, block)
        + frame(0, 1, 1, b"\0" * 5)
    )
    return connection


async def test_health_asks_nobody_who_they_are(start_server: StartServer, tokens: Path) -> None:
    running = await start_server(tokens=tokens)
    health = health_pb2_grpc.HealthStub(running.channel)
    answer = await health.Check(health_pb2.HealthCheckRequest())
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_a_reload_takes_tokens_away_and_gives_others(
    start_server: StartServer, tmp_path: Path, tokens: Path, caplog: pytest.LogCaptureFixture
) -> None:
    models = tmp_path / "models"
    write_bundle(models)
    running = await start_server(models=models, tokens=tokens)
    await translate(running, shows(ADA))
    tokens.write_text(f"bob {BOB}\n")
    await translate(running, shows(ADA))
    await running.server.reload()
    with pytest.raises(grpc.aio.AioRpcError):
        await translate(running, shows(ADA))
    tokens.write_text("nobody\n")
    write_bundle(models, manifest=replace(MANIFEST, version="2"))
    await running.server.reload()
    assert "tokens not reloaded" in [record.message for record in caplog.records]
    await translate(running, shows(BOB))
    response = await running.stub.GetModel(pb.GetModelRequest(name="de-en"), metadata=shows(BOB))
    assert response.model.version == "2", "models are read all the same"


async def test_the_clients_call_over_tls_and_show_their_token(
    start_server: StartServer, certified: Certified, tokens: Path
) -> None:
    running = await start_server(
        host="127.0.0.1", tls_certificate=certified.tls_certificate, tls_key=certified.tls_key, tokens=tokens
    )
    address = f"grpcs://127.0.0.1:{running.server.port}"
    async with AsyncClient(address, credentials=certified.roots, token=ADA) as client:
        assert (await client.translate(["Ja."], **DE_EN))[0].text == "Ja."
        streamed = [result async for result in client.translate_stream([(1, "Nein.")], **DE_EN)]
        assert streamed[0].translation is not None
        assert streamed[0].translation.text == "Nein."
        assert [str(model.reference) for model in await client.models()] == ["de-en/1"]
        assert str((await client.model("de-en")).reference) == "de-en/1"
        assert await client.health()
    async with AsyncClient(address, credentials=certified.roots, token=ADA + "3") as client:
        with pytest.raises(AuthenticationError, match="none of the server's"):
            await client.translate(["Ja."], **DE_EN)
        with pytest.raises(AuthenticationError):
            _ = [result async for result in client.translate_stream([(1, "Nein.")], **DE_EN)]
    async with AsyncClient(f"127.0.0.1:{running.server.port}", token=ADA, timeout_seconds=5) as client:
        with pytest.raises(UnavailableError):
            await client.models()


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "schlüssel-schlüssel"])
@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_a_token_that_cannot_travel_is_refused_and_not_shown(
    client: type[Client] | type[AsyncClient], token: str
) -> None:
    with pytest.raises(InvalidRequestError, match="the token") as caught:
        client("localhost:1", token=token)
    assert not token or token not in str(caught.value)


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
    whole = certify(tmp_path, "127.0.0.1")
    async with AsyncClient(address, credentials=whole.roots) as client:
        await client.models()


def test_a_server_without_its_certificate_or_tokens_does_not_start(
    start_process: StartProcess, models: Path, tmp_path: Path, certified: Certified, tokens: Path
) -> None:
    other_key = tmp_path / "other.pem"
    other_key.write_bytes(trustme.CA().issue_cert("localhost").private_key_pem.bytes())
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        serialization.load_pem_private_key(certified.tls_key.read_bytes(), None).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    chain, key = str(certified.tls_certificate), str(certified.tls_key)
    tokens.write_text("ada\n")
    for arguments, told in (
        (["--tls-certificate", chain, "--tls-key", str(tmp_path / "nowhere.pem")], "nowhere.pem are no"),
        (["--tls-certificate", key, "--tls-key", chain], "no certificate with its key"),
        (["--tls-certificate", chain, "--tls-key", str(other_key)], "no certificate with its key"),
        (["--tls-certificate", chain, "--tls-key", str(locked)], "the key without a password"),
        (["--tokens", str(tokens)], "line 1: 1 words"),
    ):
        server = start_process("--models", str(models), "--port", "0", *arguments)
        reason = str(server.wait_for("not serving")["reason"])
        assert told in reason
        assert server.end()[0] == 1
    alone = start_process("--models", str(models), "--tls-key", key)
    code, log = alone.end()
    assert code == 2
    assert "tls_certificate and tls_key are given together" in log


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


@pytest.mark.parametrize(
    ("host", "secured", "asks", "told"),
    [
        ("127.0.0.1", False, False, None),
        ("0.0.0.0", False, False, "without TLS and asks nobody"),
        ("0.0.0.0", False, True, "without TLS, for all on their way"),
        ("0.0.0.0", True, False, "asks nobody who they are: give the server --tokens"),
        ("0.0.0.0", True, True, None),
    ],
)
async def test_who_opens_the_port_to_others_is_told_what_is_open(
    start_server: StartServer,
    certified: Certified,
    tokens: Path,
    caplog: pytest.LogCaptureFixture,
    host: str,
    secured: bool,
    asks: bool,
    told: str | None,
) -> None:
    await start_server(
        host=host,
        tls_certificate=certified.tls_certificate if secured else None,
        tls_key=certified.tls_key if secured else None,
        tokens=tokens if asks else None,
    )
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == (told is not None)
    assert all(told is not None and told in warning for warning in warnings)


@pytest.mark.parametrize(
    "names",
    [
        ["translate.example.org"],
        ["*.example.org"],
        ["127.0.0.1"],
        ["::1"],
        ["ops@example.org", "a.example.org"],
    ],
)
def test_the_health_check_command_reads_the_same_environment(
    start_process: StartProcess, models: Path, tmp_path: Path, tokens: Path, names: list[str]
) -> None:
    certified = certify(tmp_path, *names)
    tokens.write_text(f"ada {ADA}\nhealthcheck {BOB}\n")
    environment = {
        "DRAGOMAN_SERVE_TLS_CERTIFICATE": str(certified.tls_certificate),
        "DRAGOMAN_SERVE_TLS_KEY": str(certified.tls_key),
        "DRAGOMAN_SERVE_TOKENS": str(tokens),
    }
    server = start_process("--models", str(models), "--port", "0", environment=environment)
    environment["DRAGOMAN_SERVE_PORT"] = str(server.wait_for("ready")["port"])
    asked = CliRunner().invoke(healthcheck, [], env=environment)
    assert asked.exit_code == 0, asked.output
    assert asked.output.startswith("de-en/1, ")
    tokens.write_text(f"ada {ADA}\n")
    without_its_own = CliRunner().invoke(healthcheck, [], env=environment)
    assert (without_its_own.exit_code, without_its_own.output) == (0, "")
    shutil.copy(certify(tmp_path, *names).tls_certificate, tmp_path / "other.pem")
    other = environment | {"DRAGOMAN_SERVE_TLS_CERTIFICATE": str(tmp_path / "other.pem")}
    # A connection that asks with other files finds the server's own renewed to them.
    certified.tls_key.unlink()
    asked = CliRunner().invoke(healthcheck, [], env=other)
    assert asked.exit_code == 1
    assert "does not answer with" in asked.output


def test_the_commands_show_the_token_of_the_environment(
    start_process: StartProcess, models: Path, tmp_path: Path, certified: Certified, tokens: Path
) -> None:
    server = start_process(
        *("--models", str(models), "--port", "0", "--tokens", str(tokens)),
        *("--tls-certificate", str(certified.tls_certificate), "--tls-key", str(certified.tls_key)),
    )
    port = server.wait_for("ready")["port"]
    roots = tmp_path / "roots.pem"
    certified.authority.cert_pem.write_to_path(str(roots))
    lines = tmp_path / "lines.de"
    lines.write_text("Ja.\nNein.\n")
    # gRPC reads its roots once a process.
    environment = os.environ | {
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(roots),
        "DRAGOMAN_SERVER": f"grpcs://127.0.0.1:{port}",
    }
    languages = ["--from", "de", "--to", "en"]
    for command, output in (
        (["models"], "de-en"),
        (["translate", *languages, "Ja."], "Ja."),
        (["translate-file", *languages, str(lines), str(tmp_path / "lines.en")], ""),
        (
            [*("evaluate", "--server", environment["DRAGOMAN_SERVER"], *languages, "--json"),
             *("--source", str(lines), "--reference", str(lines))],
            '"bleu"',
        ),
    ):  # fmt: skip
        arguments = [sys.executable, "-m", "dragoman", *command]
        known = subprocess.run(
            arguments, env=environment | {"DRAGOMAN_TOKEN": ADA}, capture_output=True, text=True
        )
        assert known.returncode == 0, known.stderr
        assert output in known.stdout
        unknown = subprocess.run(
            [*arguments, *(["--overwrite"] if command[0] == "translate-file" else [])],
            env=environment | {"DRAGOMAN_TOKEN": ""},
            capture_output=True,
            text=True,
        )
        assert unknown.returncode == 1
        assert "environment variable DRAGOMAN_TOKEN" in unknown.stderr
    assert (tmp_path / "lines.en").read_text() == "Ja.\nNein.\n"
