"""AlignTexts over a real port: a model that copies looks, saying each word, at the word that it copies."""

import asyncio
import json

import grpc
import pytest
from click.testing import CliRunner
from google.rpc import error_details_pb2
from tests.server.calls import detail, failure
from tests.server.conftest import RunningServer, StartServer

from dragoman import AlignedTexts, AsyncClient, Client, InvalidRequestError
from dragoman.cli.align_texts import align_texts
from dragoman.portions import text_pair_portions
from dragoman.v1 import translation_pb2 as pb
from dragoman_server.config import RequestLimits


def request(*pairs: tuple[str, str], **fields: object) -> pb.AlignTextsRequest:
    languages = {"source_language": "de", "target_language": "en"}
    made = [pb.TextPair(source=source, target=target) for source, target in pairs]
    return pb.AlignTextsRequest(pairs=made, **(languages | fields))  # type: ignore[arg-type]


def linked(pair: tuple[str, str], aligned: pb.AlignedTexts) -> list[tuple[str, str]]:
    source, target = pair
    return [
        (source[link.source_start : link.source_end], target[link.target_start : link.target_end])
        for link in aligned.alignments
    ]


async def test_words_are_linked_in_the_callers_own_offsets(running: RunningServer) -> None:
    pairs = [("ab cd", "ab cd"), ("  a\u00adb, cd", "\tab, cd ")]
    response = await running.stub.AlignTexts(request(*pairs))
    assert linked(pairs[0], response.pairs[0]) == [("ab", "ab"), ("cd", "cd")]
    assert linked(pairs[1], response.pairs[1]) == [("a\u00adb", "ab"), (",", ","), ("cd", "cd")]
    assert (response.model.name, response.model.version) == ("de-en", "1")
    assert response.pairs[0].source_tokens > response.pairs[0].target_tokens > 0
    await running.calls_are_counted()
    assert running.metric("dragoman_aligned_pairs_total") == 2
    assert running.metric("dragoman_requests_total", outcome="OK") == 1


async def test_as_many_lines_are_linked_line_by_line(running: RunningServer) -> None:
    pair = ("ab\n\ncd ef", "ab\r\ncd ef\n")
    aligned = (await running.stub.AlignTexts(request(pair))).pairs[0]
    assert linked(pair, aligned) == [("ab", "ab"), ("cd", "cd"), ("ef", "ef")]


async def test_what_has_no_letter_or_cannot_be_written_has_no_link(running: RunningServer) -> None:
    pairs = [("", "ab"), ("ab", ""), ("12.", "ab"), (" \n", " ")]
    response = await running.stub.AlignTexts(request(("ab", "ab"), *pairs))
    assert [len(aligned.alignments) for aligned in response.pairs] == [1, 0, 0, 0, 0]
    pair = ("ab cd", "ab 漢 cd")
    found = linked(pair, (await running.stub.AlignTexts(request(pair))).pairs[0])
    assert "漢" not in [target for _, target in found]
    assert ("ab", "ab") in found


async def test_what_shares_a_call_changes_nothing(running: RunningServer) -> None:
    pairs = [("ab cd ef gh", "ab cd ef gh"), ("a", "a"), ("ab ab ab", "ab ab ab")]
    together = (await running.stub.AlignTexts(request(*pairs))).pairs
    for pair, aligned in zip(pairs, together, strict=True):
        alone = (await running.stub.AlignTexts(request(pair))).pairs[0]
        assert list(alone.alignments) == list(aligned.alignments)


async def test_what_is_wrong_is_told_by_field(running: RunningServer) -> None:
    for message, field, said in (
        (request(*[("a", "a")] * 21), "pairs", "holds 21 pairs, and a call takes 20"),
        (request(("a", "a"), ("a", "b" * 501)), "pairs[1].target", "has 501 characters"),
        (request(("ab " * 120, "ab")), "pairs[0].source", "cut text and translation at the same places"),
        (request(("a", "a"), priority=9), "priority", "is 9, which is not known"),
        (request(("a", "a"), source_language=""), "source_language", "is required"),
    ):
        error = await failure(running.stub.AlignTexts(message))
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        violation = detail(error, error_details_pb2.BadRequest()).field_violations[0]
        assert (violation.field, said in violation.description) == (field, True), violation
    error = await failure(running.stub.AlignTexts(request(("a", "a"), target_language="fi")))
    assert error.code() is grpc.StatusCode.NOT_FOUND


async def test_a_translation_longer_than_an_output_may_be_is_refused(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_output_tokens=4))
    with pytest.raises(grpc.aio.AioRpcError, match=r"pairs\[0\]\.target"):
        await running.stub.AlignTexts(request(("ab", "ab cd ef gh ij kl")))


async def test_a_caller_without_a_token_is_refused(start_server: StartServer, tokens: object) -> None:
    running = await start_server(tokens=tokens)
    error = await failure(running.stub.AlignTexts(request(("a", "a"))))
    assert error.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_both_clients_and_the_command_show_the_links(running: RunningServer) -> None:
    address = f"localhost:{running.server.port}"
    pairs = [("ab cd", "ab cd"), ("ef", "ef")] * 5

    def call() -> tuple[list[AlignedTexts], str]:
        with Client(address) as client:
            found = client.align(pairs, source="de", target="en")
        arguments = ["--server", address, "--from", "de", "--to", "en", "--json", "ab cd", "ab cd"]
        return found, CliRunner().invoke(align_texts, arguments).output

    found, shown = await asyncio.to_thread(call)
    assert len(found) == len(pairs)
    for (source, target), aligned in zip(pairs, found, strict=True):
        for link in aligned.alignments:
            assert source[link.source_start : link.source_end] == target[link.target_start : link.target_end]
    assert [len(aligned.alignments) for aligned in found[:2]] == [2, 1]
    assert found[0].model.name == "de-en"
    assert [link["target_end"] for link in json.loads(shown)["alignments"]] == [2, 5]
    async with AsyncClient(address) as client:
        again = await client.align(iter(pairs), source="de", target="en")
        with pytest.raises(InvalidRequestError, match=r"pairs\[0\]\.source"):
            await client.align([("ab " * 120, "ab")], source="de", target="en")
        with pytest.raises(TypeError, match=r"pairs\[0\] is no pair"):
            await client.align(["ab"], source="de", target="en")  # type: ignore[list-item]
    assert [aligned.alignments for aligned in again] == [aligned.alignments for aligned in found]


def test_a_long_list_travels_in_portions() -> None:
    pairs = [("a", "b")] * 600 + [("a" * 70_000, "b"), ("c", "d")]
    portions = list(text_pair_portions(pairs))
    assert [pair for portion in portions for pair in portion] == pairs
    assert [len(portion) for portion in portions] == [256, 256, 88, 1, 1]
