"""Who calls: a file of tokens, and what a server with one answers to whom."""

import asyncio
import logging
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.server.access import ADA, BOB, shows
from tests.server.calls import GERMAN, failure
from tests.server.conftest import RunningServer, StartServer
from tests.server.copying_bundle import write_bundle

from dragoman import AsyncClient, Client, InvalidRequestError
from dragoman.v1 import translation_pb2 as pb
from dragoman_server.errors import ServerFileError, UnknownCallerError
from dragoman_server.service.callers import Callers, read_tokens

Metadata = tuple[tuple[str, str | bytes], ...]


def test_a_file_of_tokens_says_whose_each_is(tokens: Path) -> None:
    assert read_tokens(tokens) == {ADA: "ada", BOB: "bob"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "tokens can't be read"),
        (b"ada \xff\xfe", "tokens can't be read"),
        ("", "holds no token"),
        ("# nobody\n\n", "holds no token"),
        (f"ada {ADA}\n{BOB}\n", "line 2: 1 words"),
        (f"ada lovelace {ADA}\n", "line 1: 3 words"),
        ("ada 123456789012345\n", "line 1: the token, behind the name, must be of 16 ASCII characters or "),
        (f"ada {ADA}ä\n", "line 1: the token"),
        (f"ada {ADA}\x01\n", "line 1: the token"),
        (f"{ADA} ada\n", "line 1: the token"),
        (f"{ADA}{'1' * 60} {BOB}\n", "line 1: what stands first must be a name, of at most 64"),
        (f"ädä {ADA}\n", "line 1: what stands first must be a name"),
        (f"ada {ADA}\nbob {ADA}\n", "line 2: the token is another caller's too"),
    ],
)
def test_a_bad_file_of_tokens_is_told_by_line(tmp_path: Path, content: str | bytes | None, told: str) -> None:
    path = tmp_path / "tokens"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ServerFileError) as caught:
        Callers(path).read()
    said = str(caught.value)
    assert str(path) in said
    assert told in said
    assert ADA not in said
    assert BOB not in said


def test_without_a_file_everybody_may_call() -> None:
    callers = Callers(None)
    callers.use(callers.read())
    assert callers.identify(None) is None
    assert callers.identify(shows("whatever")) is None


@pytest.mark.parametrize(
    "metadata",
    [
        *(None, (), (("x-token", ADA),), (("authorization", ADA),), shows(ADA, "Basic")),
        *(shows(token) for token in (ADA[:-1], ADA + "1", ADA.upper(), "", "ada")),
        *((("authorization-bin", f"Bearer {ADA}".encode()),), (*shows("wrong"), *shows(ADA))),
    ],
)
def test_whoever_shows_no_token_of_the_file_is_nobody(tokens: Path, metadata: Metadata | None) -> None:
    callers = Callers(tokens)
    callers.use(callers.read())
    with pytest.raises(UnknownCallerError):
        callers.identify(metadata)


async def translate(running: RunningServer, metadata: Metadata) -> object:
    return await running.stub.Translate(pb.TranslateRequest(texts=["Ja."], **GERMAN), metadata=metadata)


async def stream(running: RunningServer, metadata: Metadata) -> object:
    call = running.stub.TranslateStream(metadata=metadata)
    await call.write(pb.TranslateStreamRequest(config=GERMAN))
    await call.done_writing()
    return [response async for response in call]


async def test_only_those_with_tokens_are_answered(start_server: StartServer, tokens: Path) -> None:
    running = await start_server(tokens=tokens)
    stub = running.stub
    for ask in (
        lambda metadata: translate(running, metadata),
        lambda metadata: stream(running, metadata),
        lambda metadata: stub.ListModels(pb.ListModelsRequest(), metadata=metadata),
        lambda metadata: stub.GetModel(pb.GetModelRequest(name="de-en"), metadata=metadata),
    ):
        await ask(shows(ADA))
        for metadata in ((), shows("c" * 20)):
            error = await failure(ask(metadata))
            assert error.code() is grpc.StatusCode.UNAUTHENTICATED
            assert "authorization: Bearer TOKEN" in str(error.details())
            trailers = dict(error.trailing_metadata())
            assert b"UNKNOWN_CALLER" in bytes(trailers["grpc-status-details-bin"])
    await running.calls_are_counted()
    assert running.metric("grpc_server_handled_total", grpc_code="UNAUTHENTICATED") == 8
    assert running.metric("grpc_server_handled_total", grpc_code="OK") == 4


async def test_the_log_says_who_called_and_shows_no_token(
    start_server: StartServer, tokens: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    running = await start_server(tokens=tokens)
    await translate(running, shows(BOB))
    with pytest.raises(grpc.aio.AioRpcError):
        await translate(running, shows("c" * 20))
    await running.calls_are_counted()
    calls = [record for record in caplog.records if record.message == "call"]
    told = [(vars(record)["caller"], vars(record)["outcome"]) for record in calls]
    assert told == [("bob", "OK"), (None, "UNAUTHENTICATED")]
    # Of one that is refused, from where it came and why.
    assert "peer" not in vars(calls[0])
    assert vars(calls[1])["peer"].startswith("ipv4:127.0.0.1:")
    assert vars(calls[1])["reason"].startswith("the token is none of those that the server knows")
    for record in caplog.records:
        assert not any(token in str(vars(record)) for token in (ADA, BOB, "c" * 20))


async def test_an_unknown_caller_is_refused_unheard(start_server: StartServer, tokens: Path) -> None:
    running = await start_server(tokens=tokens)
    # A unary call to the server, whose message does not come.
    call = running.channel.stream_unary("/dragoman.v1.TranslationService/Translate")()
    async with asyncio.timeout(20):
        error = await failure(call)
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    await running.calls_are_counted()
    refused = {"grpc_method": "Translate", "grpc_type": "unary", "grpc_code": "UNAUTHENTICATED"}
    assert running.metric("grpc_server_handled_total", **refused) == 1


async def test_unknown_callers_are_not_read_but_told_of_health(
    start_server: StartServer, tokens: Path
) -> None:
    running = await start_server(tokens=tokens)
    # Field 1, a text, holds a surrogate: who is known would be told so.
    malformed = b"\x0a\x03\xed\xa0\x80"
    call = running.channel.unary_unary("/dragoman.v1.TranslationService/Translate")
    for metadata, code in (
        (None, grpc.StatusCode.UNAUTHENTICATED),
        (shows(BOB + "3"), grpc.StatusCode.UNAUTHENTICATED),
        (shows(BOB), grpc.StatusCode.INVALID_ARGUMENT),
    ):
        assert (await failure(call(malformed, metadata=metadata))).code() is code
    answer = await health_pb2_grpc.HealthStub(running.channel).Check(health_pb2.HealthCheckRequest())
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
    caplog.set_level("INFO")
    write_bundle(models, "de-en/2")
    await running.server.reload()
    told = [record.message for record in caplog.records]
    assert "tokens not reloaded" in told
    assert told[-1] == "models reloaded"
    assert running.metric("dragoman_last_reload_successful") == 0
    await translate(running, shows(BOB))
    response = await running.stub.GetModel(pb.GetModelRequest(name="de-en"), metadata=shows(BOB))
    assert response.model.version == "2", "models are read all the same"
    tokens.write_text(f"bob {BOB}\n")
    await running.server.reload()
    assert running.metric("dragoman_last_reload_successful") == 1


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "schlüssel-schlüssel"])
@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_a_token_that_cannot_travel_is_refused(client: type[Client] | type[AsyncClient], token: str) -> None:
    with pytest.raises(InvalidRequestError, match="the token") as caught:
        client("localhost:1", token=token)
    assert not token or token not in str(caught.value)


async def test_a_file_of_tokens_that_others_can_read_is_warned_about(
    start_server: StartServer, tokens: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for mode, is_open in ((0o640, False), (0o644, True)):
        tokens.chmod(mode)
        caplog.clear()
        await start_server(tokens=tokens)
        warned = [record for record in caplog.records if "chmod o-r" in record.message]
        assert [record.levelname for record in warned] == ["WARNING"] * is_open
