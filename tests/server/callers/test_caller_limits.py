"""Limits of callers: their file, read strictly, and a real server that holds them by both doors."""

import asyncio
import logging
from pathlib import Path

import deepl
import grpc
import pytest
from click.testing import CliRunner
from google.rpc import error_details_pb2
from tests.server.access import ADA, BOB, shows
from tests.server.calls import DE_EN, GERMAN, detail, failure, reason_of, until
from tests.server.conftest import RunningServer, StartProcess, StartServer
from tests.server.web.conftest import ask, multipart

from dragoman import AsyncClient, OverloadedError
from dragoman.v1 import translation_pb2 as pb
from dragoman_server.cli import serve
from dragoman_server.errors import ServerFileError
from dragoman_server.service.callers import CallerLimits, limits_of, read_limits

KNOWN = {"ada", "bob", "eve"}


def write_limits(folder: Path, text: str) -> Path:
    path = folder / "limits"
    path.write_text(text)
    return path


def test_a_caller_has_its_own_line_or_that_of_all_others(tmp_path: Path) -> None:
    limits = read_limits(
        write_limits(
            tmp_path,
            "# who may how much\n\n* calls=4 characters-per-day=1000\n"
            "ada calls-per-minute=60 characters-per-minute=5\neve\tunlimited\n",
        ),
        KNOWN,
    )
    assert limits_of("ada", limits) == CallerLimits(calls_per_minute=60, characters_per_minute=5)
    assert limits_of("bob", limits) == CallerLimits(calls=4, characters_per_day=1000)
    assert limits_of("eve", limits) == CallerLimits()
    assert limits_of("bob", {}) == CallerLimits()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ada\n", "1: no limit stands behind the name"),
        ("* calls=1\n\nada calls=1\nada calls=2\n", "4: ada has a line already"),
        ("mallory calls=1\n", "1: 'mallory' is no caller of the file of tokens"),
        ("ada call=1\n", "1: 'call=1' is no limit; a line is NAME LIMIT=VALUE ..., and there are calls, "),
        ("ada calls\n", "1: calls is ''; it must be a whole number from 1"),
        *((f"ada calls={value}\n", f"1: calls is '{value}'") for value in ("0", "-1", "1.5", "²", 10**16)),
        ("ada calls=1 calls=2\n", "1: calls stands there twice"),
        ("ada unlimited calls=2\n", "1: 'unlimited' is no limit"),
        ("ada calls =2\n", "1: calls is ''"),
    ],
)
def test_a_bad_file_of_limits_is_refused_by_its_line(tmp_path: Path, text: str, told: str) -> None:
    path = write_limits(tmp_path, text)
    with pytest.raises(ServerFileError) as caught:
        read_limits(path, KNOWN)
    assert str(caught.value).startswith(f"{path}, line {told}")
    with pytest.raises(ServerFileError, match="nowhere can't be read: No such file"):
        read_limits(tmp_path / "nowhere", KNOWN)


@pytest.fixture
def limits(tmp_path: Path) -> Path:
    return write_limits(tmp_path, "ada characters-per-day=10\n")


async def translate(running: RunningServer, text: str, token: str = ADA) -> str:
    request = pb.TranslateRequest(texts=[text], **GERMAN)
    response = await running.stub.Translate(request, metadata=shows(token))
    return response.translations[0].text


async def refusal(running: RunningServer, text: str, token: str = ADA) -> tuple[str, str, float]:
    """Of a call that must be refused: why, in a word and in many, and when to come again."""
    error = await failure(translate(running, text, token))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    reason = detail(error, error_details_pb2.ErrorInfo()).reason
    retry = detail(error, error_details_pb2.RetryInfo()).retry_delay
    return reason, error.details(), retry.ToMilliseconds() / 1000


def fetch(running: RunningServer, path: str, body: bytes | None = None, token: str = ADA) -> asyncio.Future:
    url, headers = f"http://127.0.0.1:{running.server.http_port}{path}", {"Authorization": f"Bearer {token}"}
    return asyncio.ensure_future(asyncio.to_thread(ask, url, body, headers))


async def test_both_doors_refuse_beyond_a_day(start_server: StartServer, tokens: Path, limits: Path) -> None:
    running = await start_server(http_port=0, tokens=tokens, caller_limits=limits)
    assert await translate(running, "Ja. Nein.") == "Ja. Nein."
    reason, message, retry_seconds = await refusal(running, "Ja.")
    assert reason == "CALLER_LIMIT"
    assert "ada sends 3 characters, and has had 9 today" in message
    assert "characters-per-day=10 (--caller-limits): try again in " in message
    assert 0 < retry_seconds <= 86_400
    body = b'{"texts":["Ja."],"sourceLanguage":"de","targetLanguage":"en"}'
    answer = await fetch(running, "/v1/translate", body)
    assert (answer.status, answer.json["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert abs(int(answer.headers["Retry-After"]) - retry_seconds) < 60
    answer = await fetch(running, "/translate", b"q=Ja.&source=de&target=en")
    assert answer.status == 429
    assert "has had 9 today" in answer.json["error"]
    url = f"http://127.0.0.1:{running.server.http_port}/translate_file"
    form, kind = multipart("a.txt", b"Ja.", source="de", target="en")
    answer = await asyncio.to_thread(ask, url, form, {"Authorization": f"Bearer {ADA}", **kind})
    assert answer.status == 429
    assert await translate(running, "Ja.", BOB) == "Ja."
    assert await translate(running, "J") == "J"
    assert running.metric("dragoman_caller_characters_total", caller="ada") == 10
    assert running.metric("dragoman_caller_characters_total", caller="bob") == 3
    assert running.metric("dragoman_caller_refusals_total", caller="ada", limit="characters-per-day") == 4
    await until(lambda: not running.metric("dragoman_caller_calls_in_progress"))


async def test_deepls_client_is_told_of_usage(start_server: StartServer, tokens: Path, limits: Path) -> None:
    running = await start_server(http_port=0, tokens=tokens, caller_limits=limits)
    await translate(running, "Ja. Nein.")

    def use() -> tuple[int | None, int | None]:
        client = deepl.DeepLClient(ADA, server_url=f"http://127.0.0.1:{running.server.http_port}")
        usage = client.get_usage().character
        with pytest.raises(deepl.QuotaExceededException):
            client.translate_text("Nein.", source_lang="DE", target_lang="EN-GB")
        client.close()
        return usage.count, usage.limit

    assert await asyncio.to_thread(use) == (9, 10)


async def test_what_is_refused_does_not_count(start_server: StartServer, tokens: Path, limits: Path) -> None:
    running = await start_server(tokens=tokens, caller_limits=limits)
    for request in (
        pb.TranslateRequest(texts=["Ja. Ja."], source_language="de", target_language="xx"),
        pb.TranslateRequest(texts=["Ja. Ja."], options=pb.DecodingOptions(beam_size=99), **GERMAN),
    ):
        with pytest.raises(grpc.aio.AioRpcError):
            await running.stub.Translate(request, metadata=shows(ADA))
    with pytest.raises(grpc.aio.AioRpcError, match="texts: has 11 characters, and this caller's limit is"):
        await translate(running, "x" * 11)
    assert await translate(running, "Ja. Nein. ") == "Ja. Nein. "


async def test_calls_at_once_are_bounded_and_a_cancelled_one_makes_room(
    start_server: StartServer, tokens: Path, limits: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    limits.write_text("* calls=1\n")
    running = await start_server(http_port=0, tokens=tokens, caller_limits=limits)
    for _ in range(3):
        stream = running.stub.TranslateStream(metadata=shows(ADA))
        await stream.write(pb.TranslateStreamRequest(config=pb.TranslateStreamConfig(**GERMAN)))
        await stream.write(pb.TranslateStreamRequest(item=pb.TranslateStreamItem(id="1", text="Ja.")))
        await stream.read()
        reason, message, _ = await refusal(running, "Ja.")
        assert (reason, "ada has 1 calls in progress" in message) == ("CALLER_LIMIT", True)
        assert (await fetch(running, "/v1/models")).status == 429
        assert await translate(running, "Ja.", BOB) == "Ja."
        assert running.metric("dragoman_caller_calls_in_progress", caller="ada") == 1
        stream.cancel()
        await until(lambda: not running.metric("dragoman_caller_calls_in_progress", caller="ada"))
    assert await translate(running, "Ja.") == "Ja."
    refused = next(vars(each) for each in caplog.records if vars(each).get("outcome") == "RESOURCE_EXHAUSTED")
    assert (refused["caller"], "calls=1" in refused["reason"]) == ("ada", True)


async def test_items_are_refused_one_by_one(start_server: StartServer, tokens: Path, limits: Path) -> None:
    running = await start_server(host="127.0.0.1", tokens=tokens, caller_limits=limits)
    async with AsyncClient(f"127.0.0.1:{running.server.port}", token=ADA) as client:
        texts = [(number, "Ja.") for number in range(5)]
        results = [result async for result in client.translate_stream(texts, in_order=True, **DE_EN)]
        assert [result.error is None for result in results] == [True] * 3 + [False] * 2
        error = results[-1].error
        assert isinstance(error, OverloadedError)
        assert error.retry_after_seconds is not None
        assert error.reason == "CALLER_LIMIT"


async def test_a_reload_changes_limits_and_what_was_had_counts_on(
    start_server: StartServer, tokens: Path, limits: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = await start_server(tokens=tokens, caller_limits=limits)
    await translate(running, "Ja. Nein.")
    limits.write_text("ada characters-per-day=12\n")
    await refusal(running, "Ja.")
    await running.server.reload()
    assert await translate(running, "Ja.") == "Ja."
    assert (await refusal(running, "Ja."))[1].startswith("ada sends 3 characters, and has had 12 today")
    # Tokens are taken away, whatever the limits say of callers who are gone.
    tokens.write_text(f"bob {BOB}\n")
    await running.server.reload()
    assert "line 1: 'ada' is no caller of the file of tokens" in reason_of(caplog, "limits not reloaded")
    assert running.metric("dragoman_last_reload_successful") == 0
    with pytest.raises(grpc.aio.AioRpcError, match="none of those"):
        await translate(running, "Ja.")


def test_bad_limits_are_told(start_process: StartProcess, models: Path, tokens: Path, limits: Path) -> None:
    limits.write_text("ada calls=none\n")
    server = start_process(models, "--caller-limits", limits, "--tokens", tokens)
    assert "line 1: calls is 'none'" in str(server.wait_for("not serving")["reason"])
    assert server.end()[0] == 1
    ran = CliRunner().invoke(serve, ["--models", str(models), "--caller-limits", str(limits)])
    assert (ran.exit_code, "--caller-limits is given without tokens" in ran.output) == (2, True)


async def test_callers_beyond_the_first_two_hundred_count_together(
    start_server: StartServer, tokens: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman_server.metrics.callers.MAX_NAMES", 1)
    running = await start_server(tokens=tokens)
    for token in (BOB, ADA, BOB):
        await translate(running, "Ja.", token)
    assert running.metric("dragoman_caller_calls_total", caller="bob") == 2
    assert running.metric("dragoman_caller_calls_total", caller="other") == 1
    assert running.metric("dragoman_caller_calls_total", caller="ada") == 0
