"""From one language to another through a third, where no model is direct."""

import asyncio
import json
import logging
import sys
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner
from tests.growth import assert_linear
from tests.server.calls import failure
from tests.server.conftest import RunningServer, StartServer
from tests.server.copying_bundle import write_bundle

from dragoman import AsyncClient, InvalidRequestError, ModelNotFoundError
from dragoman.cli import main
from dragoman.v1 import translation_pb2 as pb
from dragoman_server.service.pivoting import Links, compose

TO_FRENCH = {"texts": ["Ja, 12. Nein."], "source_language": "de", "target_language": "fr"}


@pytest.fixture(scope="module")
def two_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two_models")
    write_bundle(folder)
    write_bundle(folder, "en-fr/1", "en-fr")
    return folder


def link(source: tuple[int, int], target: tuple[int, int], weight: float) -> pb.Alignment:
    ends = ("source_start", "source_end", "target_start", "target_end")
    return pb.Alignment(**dict(zip(ends, source + target, strict=True)), weight=weight)


async def translate(running: RunningServer, **more: object) -> pb.TranslateResponse:
    return await running.stub.Translate(pb.TranslateRequest(**TO_FRENCH, **more))


async def test_texts_go_through_the_servers_language_and_both_models_are_named(
    start_server: StartServer, two_models: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    running = await start_server(models=two_models, pivot="en")
    answer = await translate(running, return_alignments=True)
    await running.calls_are_counted()
    (call,) = [vars(record) for record in caplog.records if record.message == "call"]
    assert call["characters"] == len("Ja, 12. Nein."), "the caller's own text counts, and once"
    translation = answer.translations[0]
    assert translation.text == "Ja, 12. Nein."
    assert [model.name for model in answer.path] == ["de-en", "en-fr"]
    assert answer.model.name == "en-fr"
    links = translation.hypotheses[0].alignments
    assert {(each.source_start, each.target_start) for each in links} >= {(0, 0), (8, 8)}
    assert (await failure(translate(running, pivot_language=""))).code() is grpc.StatusCode.NOT_FOUND
    direct = await running.stub.Translate(
        pb.TranslateRequest(texts=["Ja."], source_language="de", target_language="en")
    )
    assert not direct.path


async def test_a_request_may_ask_for_it_by_itself(start_server: StartServer, two_models: Path) -> None:
    running = await start_server(models=two_models)
    assert (await failure(translate(running))).code() is grpc.StatusCode.NOT_FOUND
    assert len((await translate(running, pivot_language="en")).path) == 2
    assert (await failure(translate(running, pivot_language="nl"))).code() is grpc.StatusCode.NOT_FOUND
    terms = pb.Protection(terms=[pb.Term(source="Ja", target="Oui")])
    with pytest.raises(grpc.aio.AioRpcError, match=r"protection\.terms") as caught:
        await translate(running, pivot_language="en", protection=terms)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_client_and_command_name_both_models(start_server: StartServer, two_models: Path) -> None:
    running = await start_server(models=two_models)
    address = f"127.0.0.1:{running.server.port}"
    async with AsyncClient(address) as client:
        (found,) = await client.translate(["Ja."], source="de", target="fr", pivot="en")
        assert [str(model) for model in found.path] == ["de-en/1", "en-fr/1"]
        with pytest.raises(ModelNotFoundError):
            await client.translate(["Ja."], source="de", target="fr", pivot="")
        with pytest.raises(InvalidRequestError, match="pivot"):
            await client.translate(["Ja."], source="de", target="fr", pivot="\ud800")

    async def run(*arguments: str) -> tuple[int, str]:
        command = ["translate", "--server", address, "--from", "de", "--to", "fr", *arguments]
        done = await asyncio.to_thread(CliRunner().invoke, main, command)
        return done.exit_code, done.output

    status, told = await run("--pivot", "en", "--json", "Ja.")
    assert status == 0
    assert [model["name"] for model in json.loads(told)["path"]] == ["de-en", "en-fr"]
    status, told = await run("--pivot", "en", "--term", "Ja=Oui", "Ja.")
    assert (status, "--term" in told) == (1, True)


async def test_files_go_through_a_language_between_and_on_with_the_models_that_they_began_with(
    start_server: StartServer, two_models: Path, tmp_path: Path
) -> None:
    running = await start_server(models=two_models, pivot="en")
    address = f"127.0.0.1:{running.server.port}"
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"text": "Ja, 12."}\n{"text": "Nein.", "protected_ranges": [[0, 4]]}\n')

    async def run(*arguments: str) -> tuple[int, str]:
        command = ["translate-file", "--server", address, "--from", "de", "--to", "fr", *arguments]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "dragoman", *command, stderr=asyncio.subprocess.PIPE
        )
        _, told = await process.communicate()
        assert process.returncode is not None
        return process.returncode, told.decode()

    status, told = await run(str(source), str(output))
    assert (status, "2 lines, of which 1 failed" in told) == (3, True), told
    assert json.loads(output.read_text().splitlines()[0])["translation"] == "Ja, 12."
    (failed,) = output.with_name("out.jsonl.errors.jsonl").read_text().splitlines()
    assert "protected_ranges: is of one model" in failed
    # What a run that goes on asks for.
    assert (await run("--model", "de-en/1 en-fr/1", str(source), str(tmp_path / "2.jsonl")))[0] == 3
    status, told = await run("--model", "de-en/1 en-nl/1", str(source), str(tmp_path / "3.jsonl"))
    assert (status, "en-nl/1" in told) == (1, True)
    status, told = await run("--pivot", "", str(source), str(tmp_path / "4.jsonl"))
    assert (status, "'fr'" in told) == (1, True)


async def test_a_stream_tells_what_both_models_warn_of(start_server: StartServer, two_models: Path) -> None:
    running = await start_server(models=two_models)
    async with AsyncClient(f"127.0.0.1:{running.server.port}") as client:
        languages = {"source": "de", "target": "fr", "pivot": "en"}
        text = "Ja, Ж. Nein, " + "Ja " * 40
        (alone,) = await client.translate([text], **languages)
        stream = client.translate_stream([(1, text), (2, "Ja.")], **languages, in_order=True)
        first, second = [result.translation async for result in stream]
    assert first is not None
    assert second is not None
    assert first.warnings
    assert replace(first, timings=alone.timings) == alone, "a stream answers as a call does"
    assert [str(model) for model in second.path] == ["de-en/1", "en-fr/1"]


def test_links_are_composed_over_the_words_between() -> None:
    # Source words A, B; between a1, a2, b; target X comes from a1 and b, Y from a2.
    first = [link((0, 1), (0, 2), 0.8), link((0, 1), (3, 5), 1.0), link((2, 3), (6, 7), 0.9)]
    second = [link((0, 2), (0, 1), 0.5), link((6, 7), (0, 1), 0.5), link((3, 5), (2, 3), 0.6)]
    assert [
        (each.source_start, each.target_start, pytest.approx(each.weight))
        for each in compose(Links(first), second)
    ] == [(2, 0, 0.45), (0, 0, 0.40), (0, 2, 0.6)]


def test_twice_the_links_are_composed_in_twice_the_time() -> None:
    def composes(number: int) -> None:
        links = [link((3 * rank, 3 * rank + 2), (3 * rank, 3 * rank + 2), 1.0) for rank in range(number)]
        assert len(compose(Links(links), links)) == number

    assert_linear(composes, 4_000)
