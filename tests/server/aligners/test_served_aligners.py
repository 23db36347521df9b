"""AlignTexts by a saved aligner, over a real port, and the folder of these."""

import asyncio
import json
import logging
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.request import Request, urlopen

import grpc
import pytest
from click.testing import CliRunner
from google.rpc import error_details_pb2
from prometheus_client import CollectorRegistry
from tests.server import test_tracing
from tests.server.access import ADA, shows
from tests.server.calls import detail, failure
from tests.server.conftest import CPU, RunningServer, StartServer
from tests.server.test_tracing import Collector, start_traced
from tests.server.text.test_align_texts import linked
from tests.training.alignment.test_align_command import train

from dragoman import AlignedTexts, AsyncClient, Client, ModelNotFoundError
from dragoman.cli.align_texts import align_texts
from dragoman.v1 import translation_pb2 as pb
from dragoman_server.aligners.aligner import Aligners
from dragoman_server.config import RequestLimits
from dragoman_server.errors import ServerFileError
from dragoman_server.metrics.translation import Metrics
from dragoman_server.options import MissingExtraError
from dragoman_training.alignment.character_links import open_character_aligner

collector = test_tracing.collector
SMALL = {"model": "aligner:small", "version": ""}
LONG = ("hund katze baum vogel " * 100, "dog cat tree bird " * 100)
"""So many words that linking them takes tenths of a second."""


def request(*pairs: tuple[str, str], **fields: object) -> pb.AlignTextsRequest:
    made = [pb.TextPair(source=source, target=target) for source, target in pairs]
    return pb.AlignTextsRequest(pairs=made, **({"aligner": "small"} | fields))  # type: ignore[arg-type]


@pytest.fixture
async def serving(start_server: StartServer, aligners: Path) -> RunningServer:
    limits = RequestLimits(max_texts=20, max_text_characters=500, max_aligned_words=8)
    return await start_server(aligners=aligners, limits=limits)


async def test_words_are_linked_in_the_callers_own_offsets_line_by_line(serving: RunningServer) -> None:
    pairs = [("der hund", "the dog"), ("  der\tHu\u00adnd sieht", "dog the sees ")]
    response = await serving.stub.AlignTexts(request(*pairs))
    assert linked(pairs[0], response.pairs[0]) == [("der", "the"), ("hund", "dog")]
    assert linked(pairs[1], response.pairs[1]) == [("Hu\u00adnd", "dog"), ("der", "the"), ("sieht", "sees")]
    assert all(0 < link.weight <= 1 for link in response.pairs[0].alignments)
    assert (response.aligner, response.HasField("model")) == ("small", False)
    assert [(one.source_tokens, one.target_tokens) for one in response.pairs] == [(2, 2), (3, 3)]
    assert response.pairs[0].timings.decode.ToNanoseconds() > 0
    await serving.calls_are_counted()
    assert serving.metric("dragoman_requests_total", outcome="OK", **SMALL) == 1
    assert serving.metric("dragoman_request_seconds_count", priority="interactive", **SMALL) == 1
    assert serving.metric("dragoman_aligned_pairs_total", **SMALL) == 2
    assert serving.metric("dragoman_aligned_pairs_total") == 2
    pair = ("der hund\n\nder vogel", "the dog\r\nthe bird\n")
    aligned = (await serving.stub.AlignTexts(request(pair))).pairs[0]
    assert linked(pair, aligned) == [("der", "the"), ("hund", "dog"), ("der", "the"), ("vogel", "bird")]
    assert aligned.alignments[2].source_start == 10


async def test_what_shares_a_call_changes_nothing(serving: RunningServer, aligner_folder: Path) -> None:
    pairs = [("der hund sieht", "the dog sees"), ("12.", "dog"), ("", ""), ("baum alt und neu", "old tree")]
    together = (await serving.stub.AlignTexts(request(*pairs))).pairs
    for pair, aligned in zip(pairs, together, strict=True):
        alone = (await serving.stub.AlignTexts(request(pair))).pairs[0]
        assert list(alone.alignments) == list(aligned.alignments)
    assert [len(aligned.alignments) for aligned in together[:3]] == [3, 0, 0]
    (own,) = open_character_aligner(str(aligner_folder)).link([pairs[3]])
    assert [(link.source_start, link.target_end) for link in together[3].alignments] == [
        (link.source[0], link.target[1]) for link in own
    ]


async def test_what_is_wrong_is_told_by_field(serving: RunningServer) -> None:
    for message, field, said in (
        (request(("hund", "dog"), model="de-en"), "model", "is 'de-en' beside an aligner"),
        (request(*[("hund", "dog")] * 21), "pairs", "holds 21 pairs, and a call takes 20"),
        (request(("hund", "x" * 501)), "pairs[0].target", "has 501 characters"),
        (request(("a", "a"), ("hund " * 9, "dog")), "pairs[1].source", "have 9 words, and at most 8"),
        (request(("the dog sees", "der hund sieht")), "pairs", "they belong the other way round"),
        (request(("a", "a"), priority=9), "priority", "is 9, which is not known"),
    ):
        error = await failure(serving.stub.AlignTexts(message))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        (violation,) = detail(error, error_details_pb2.BadRequest()).field_violations
        assert (violation.field, said in violation.description) == (field, True), violation


async def test_an_unknown_aligner_is_told_as_such(serving: RunningServer, start_server: StartServer) -> None:
    error = await failure(serving.stub.AlignTexts(request(("a", "a"), aligner="large")))
    assert error.code() is grpc.StatusCode.NOT_FOUND
    assert error.details() == "there is no aligner 'large'; there are: small"
    assert detail(error, error_details_pb2.ErrorInfo()).reason == "ALIGNER_NOT_FOUND"
    without = await start_server()
    error = await failure(without.stub.AlignTexts(request(("a", "a"))))
    assert "there are: none; a server has those of its --aligners" in (error.details() or "")


async def test_lines_that_find_no_room_are_refused_at_once(start_server: StartServer, aligners: Path) -> None:
    running = await start_server(aligners=aligners, engine=replace(CPU, max_queue=4))
    many = request(("\n".join([LONG[0]] * 4), "\n".join([LONG[1]] * 4)))
    ended = await asyncio.gather(*(running.stub.AlignTexts(many) for _ in range(4)), return_exceptions=True)
    errors = [error for error in ended if isinstance(error, grpc.aio.AioRpcError)]
    assert 0 < len(errors) < len(ended)
    for error in errors:
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert detail(error, error_details_pb2.RetryInfo()).retry_delay.ToMilliseconds() > 0
    assert (await running.stub.AlignTexts(request(("hund", "dog")))).pairs[0].alignments
    error = await failure(running.stub.AlignTexts(request(("hund\n" * 5, "dog\n" * 5))))
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "have 5 lines to link, and the queue takes 4" in (error.details() or "")


async def test_a_drain_waits_for_what_is_being_linked(start_server: StartServer, aligners: Path) -> None:
    running = await start_server(aligners=aligners)
    call = asyncio.ensure_future(running.stub.AlignTexts(request(LONG)))
    await running.until("grpc_server_started_total", grpc_method="AlignTexts")
    assert await running.server.drain()
    assert (await call).pairs[0].source_tokens == 400


async def test_callers_have_tokens_and_an_allowance(
    start_server: StartServer, aligners: Path, tokens: Path, tmp_path: Path
) -> None:
    (tmp_path / "limits").write_text("ada characters-per-minute=20\n")
    running = await start_server(aligners=aligners, tokens=tokens, caller_limits=tmp_path / "limits")
    error = await failure(running.stub.AlignTexts(request(("hund", "dog"))))
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED
    await running.stub.AlignTexts(request(("der hund", "the dog")), metadata=shows(ADA))
    error = await failure(running.stub.AlignTexts(request(("der hund", "the dog")), metadata=shows(ADA)))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_trace_has_the_aligner_and_its_stages(
    start_server: StartServer, collector: Collector, aligners: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    running: RunningServer = await start_traced(start_server, collector, aligners=aligners)
    await running.stub.AlignTexts(request(("hund", "dog"), ("hund vogel", "dog bird")))
    assert await running.server.drain()
    (call,) = collector.named("AlignTexts")
    (linking,) = collector.children(call)
    assert linking.name == "aligner:small"
    stages = collector.children(linking)
    assert [stage.name for stage in stages] == ["text", "queue", "link", "text"]
    moments = [moment for one in stages for moment in (one.start_time_unix_nano, one.end_time_unix_nano)]
    assert moments == sorted(moments)
    (logged,) = [vars(record) for record in caplog.records if record.message == "call"]
    assert (logged["model"], logged["pairs"], logged["source_tokens"]) == ("aligner:small", 2, 3)


async def test_clients_command_and_http_name_an_aligner(start_server: StartServer, aligners: Path) -> None:
    running = await start_server(aligners=aligners, http_port=0)
    address = f"localhost:{running.server.port}"
    pairs = [("der hund", "the dog")]

    def call() -> tuple[list[AlignedTexts], str, bytes]:
        with Client(address) as client:
            found = client.align(pairs, aligner="small")
            with pytest.raises(ModelNotFoundError, match="there are: small"):
                client.align(pairs, aligner="other")
        arguments = ["--server", address, "--server-aligner", "small"]
        shown = CliRunner().invoke(align_texts, [*arguments, "--json", *pairs[0]]).output
        drawn = CliRunner().invoke(align_texts, [*arguments, *pairs[0]]).output
        assert "believed in" in drawn
        body = {"pairs": [{"source": "der hund", "target": "the dog"}], "aligner": "small"}
        url = f"http://127.0.0.1:{running.server.http_port}/v1/align"
        with urlopen(Request(url, json.dumps(body).encode())) as response:
            return found, shown, response.read()

    found, shown, told = await asyncio.to_thread(call)
    assert (found[0].aligner, found[0].model, found[0].source_tokens) == ("small", None, 2)
    assert json.loads(shown)["aligner"] == "small"
    over_http = json.loads(told)
    assert over_http["aligner"] == "small"
    assert [link["targetEnd"] for link in over_http["pairs"][0]["alignments"]] == [3, 7]
    async with AsyncClient(address) as client:
        (again,) = await client.align(pairs, aligner="small")
    assert (again.aligner, again.alignments) == ("small", found[0].alignments)


def copy_damaged(folder: Path, aligner: Path) -> None:
    shutil.copytree(aligner, folder / "a")
    (folder / "a" / "forward.npz").write_bytes(b"PK")


BROKEN: dict[str, Callable[[Path, Path], object]] = {
    "can't be read: No such file or directory": lambda folder, _: folder.rmdir(),
    "holds no aligner: `dragoman align train --out": lambda folder, _: None,
    "notes is no folder": lambda folder, _: (folder / "notes").write_text(""),
    "aligner.json is no folder": lambda folder, it: shutil.copytree(it, folder, dirs_exist_ok=True),
    "an aligner's name has letters": lambda folder, it: (folder / "ä b").symlink_to(it),
    "is no saved aligner: it has no aligner.json": lambda folder, _: (folder / "a").mkdir(),
    "is damaged": copy_damaged,
}


@pytest.mark.parametrize("said", BROKEN)
async def test_no_server_starts_with_a_folder_of_something_else(
    start_server: StartServer, tmp_path: Path, aligner_folder: Path, said: str
) -> None:
    BROKEN[said](tmp_path, aligner_folder)
    with pytest.raises(ServerFileError, match=said):
        await start_server(aligners=tmp_path)


def test_what_is_being_written_is_not_read(tmp_path: Path, aligner_folder: Path) -> None:
    (tmp_path / ".b.123.partial").mkdir()
    (tmp_path / "a").symlink_to(aligner_folder)
    assert list(Aligners(tmp_path, Metrics(CollectorRegistry())).read()) == ["a"]


async def test_a_server_without_the_extra_says_what_to_install(
    start_server: StartServer, aligners: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("dragoman_training")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingExtraError, match=r"--aligners needs numba.*'\.\[align\]'"):
        await start_server(aligners=aligners)


async def test_reloads_read_the_new(start_server: StartServer, aligner_folder: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(aligner_folder, tmp_path / name)
    running = await start_server(aligners=tmp_path)
    served = running.server._aligners
    kept = served.by_name["a"].linker
    (tmp_path / "b").rename(tmp_path / "c")
    await running.server.reload()
    assert list(served.by_name) == ["a", "c"]
    assert served.by_name["a"].linker is kept
    assert running.metric("dragoman_last_reload_successful") == 1
    await running.stub.AlignTexts(request(("hund", "dog"), aligner="c"))
    assert running.metric("dragoman_aligned_pairs_total", model="aligner:c") == 1
    (tmp_path / "broken").mkdir()
    await running.server.reload()
    assert list(served.by_name) == ["a", "c"]
    assert running.metric("dragoman_last_reload_successful") == 0
    (tmp_path / "broken").rmdir()
    shutil.rmtree(tmp_path / "c")
    await running.server.reload()
    assert running.metric("dragoman_aligned_pairs_total", model="aligner:c") == 0
    assert list(served.by_name) == ["a"]


@pytest.fixture(scope="session")
def aligner_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(tmp_path_factory.mktemp("served_aligner"))


@pytest.fixture(scope="session")
def aligners(aligner_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as --aligners takes it, with `small`."""
    folder = tmp_path_factory.mktemp("aligners")
    (folder / "small").symlink_to(aligner_folder)
    return folder
