"""Who reaches a server, over what and as whom: TLS, its certificate renewed while it serves, and tokens."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives import serialization
from tests.server.access import ADA, BOB, Certified, certify
from tests.server.calls import DE_EN, until
from tests.server.conftest import StartServer

from dragoman import AsyncClient, AuthenticationError, UnavailableError
from dragoman_server.cli import serve
from dragoman_server.errors import ServerFileError
from dragoman_server.healthcheck import healthcheck


async def test_clients_call_over_tls(start_server: StartServer, certified: Certified, tokens: Path) -> None:
    running = await start_server(host="127.0.0.1", tokens=tokens, **certified.files)
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
        with pytest.raises(AuthenticationError, match="none of those that the server knows"):
            await client.translate(["Ja."], **DE_EN)
        with pytest.raises(AuthenticationError):
            _ = [result async for result in client.translate_stream([(1, "Nein.")], **DE_EN)]
    async with AsyncClient(f"127.0.0.1:{running.server.port}", token=ADA, timeout_seconds=5) as client:
        with pytest.raises(UnavailableError):
            await client.models()


async def test_a_server_without_its_certificate_or_tokens_does_not_start(
    start_server: StartServer, models: Path, tmp_path: Path, certified: Certified, tokens: Path
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
    chain, key = certified.tls_certificate, certified.tls_key
    tokens.write_text("ada\n")
    for config, told in (
        ({"tls_certificate": chain, "tls_key": tmp_path / "no.pem"}, "no.pem can't be read: No such file"),
        ({"tls_certificate": key, "tls_key": chain}, "no certificate with its key"),
        ({"tls_certificate": chain, "tls_key": other_key}, "no certificate with its key"),
        ({"tls_certificate": chain, "tls_key": locked}, "the key without a password"),
        ({"tokens": tokens}, "line 1: 1 words"),
    ):
        with pytest.raises(ServerFileError, match=told):
            await start_server(**config)
    alone = CliRunner().invoke(serve, ["--models", str(models), "--tls-key", str(key)])
    assert alone.exit_code == 2
    assert "--tls-certificate and --tls-key are given together" in alone.output


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
    await start_server(host=host, tokens=tokens if asks else None, **(certified.files if secured else {}))
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == (told is not None)
    assert all(told is not None and told in warning for warning in warnings)


@pytest.mark.parametrize(
    "names", ["translate.example.org", "*.example.org", "127.0.0.1", "::1", "ops@example.org a.example.org"]
)
async def test_the_health_check_command_reads_the_same_environment(
    start_server: StartServer, tmp_path: Path, tokens: Path, names: str
) -> None:
    certified = certify(tmp_path, *names.split())
    tokens.write_text(f"ada {ADA}\nhealthcheck {BOB}\n")
    running = await start_server(tokens=tokens, **certified.files)
    settings = {**certified.files, "tokens": tokens, "port": running.server.port}
    environment = {f"DRAGOMAN_SERVE_{name.upper()}": str(value) for name, value in settings.items()}

    async def check(**changes: str) -> Result:
        return await asyncio.to_thread(CliRunner().invoke, healthcheck, [], env=environment | changes)

    asked = await check()
    assert asked.exit_code == 0, asked.output
    assert asked.output.startswith("de-en/1, ")
    tokens.write_text(f"ada {ADA}\n")
    without_its_own = await check()
    assert (without_its_own.exit_code, without_its_own.output) == (0, "")
    shutil.copy(certify(tmp_path, *names.split()).tls_certificate, tmp_path / "other.pem")
    # A connection that asks with other files finds the server's own renewed to them.
    certified.tls_key.unlink()
    asked = await check(DRAGOMAN_SERVE_TLS_CERTIFICATE=str(tmp_path / "other.pem"))
    assert asked.exit_code == 1
    assert "does not answer with" in asked.output


async def test_the_commands_show_the_token_of_the_environment(
    start_server: StartServer, tmp_path: Path, certified: Certified, tokens: Path
) -> None:
    running = await start_server(tokens=tokens, **certified.files)
    roots = tmp_path / "roots.pem"
    certified.authority.cert_pem.write_to_path(str(roots))
    lines = tmp_path / "lines.de"
    lines.write_text("Ja.\nNein.\n")
    # gRPC reads its roots once a process.
    environment = os.environ | {
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(roots),
        "DRAGOMAN_SERVER": f"grpcs://127.0.0.1:{running.server.port}",
    }

    async def run(*arguments: str, token: str = ADA) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "dragoman", *arguments],
            env=environment | {"DRAGOMAN_TOKEN": token},
            capture_output=True,
            text=True,
        )

    languages = ("--from", "de", "--to", "en")
    files = ("--source", str(lines), "--reference", str(lines))
    for command, output in (
        (("models",), "de-en"),
        (("translate", *languages, "Ja."), "Ja."),
        (("translate-file", *languages, str(lines), str(tmp_path / "lines.en")), ""),
        (("evaluate", "--server", environment["DRAGOMAN_SERVER"], *languages, "--json", *files), '"bleu"'),
    ):
        known = await run(*command)
        assert known.returncode == 0, known.stderr
        assert output in known.stdout
    assert (tmp_path / "lines.en").read_text() == "Ja.\nNein.\n"
    unknown = await run("translate-file", *languages, str(lines), str(tmp_path / "other.en"), token="")
    assert unknown.returncode == 1
    assert "environment variable DRAGOMAN_TOKEN" in unknown.stderr


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
    await until(lambda: failures() > before)
    await calls_with(address, renewed)
    before = failures()
    renewed.tls_key.unlink()
    await until(lambda: failures() > before)
    await calls_with(address, renewed)
    await asyncio.sleep(0.2)
    assert failures() == before + 1, "told once"
    assert running.metric("dragoman_last_reload_successful") == 0
    await calls_with(address, certify(tmp_path, "127.0.0.1"))
    assert running.metric("dragoman_last_reload_successful") == 1
