"""Requests that are refused: each fault is named."""

import grpc
import pytest
from google.rpc import error_details_pb2
from tests.server.calls import GERMAN, detail, failure, translate, violated_fields
from tests.server.conftest import RunningServer, StartServer

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.config import RequestLimits


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"beam_size": 0}, "options.beam_size"),
        ({"beam_size": 1000}, "options.beam_size"),
        ({"num_hypotheses": 0}, "options.num_hypotheses"),
        ({"beam_size": 2, "num_hypotheses": 3}, "options.num_hypotheses"),
        ({"length_penalty": -1.0}, "options.length_penalty"),
        ({"length_penalty": float("nan")}, "options.length_penalty"),
        ({"length_penalty": 1e30}, "options.length_penalty"),
        ({"max_output_tokens": 0}, "options.max_output_tokens"),
        ({"max_output_tokens": 1_000_000}, "options.max_output_tokens"),
        ({"max_output_tokens": 3, "target_prefix": "abcdef"}, "options.target_prefix"),
        ({"length_policy": 77}, "options.length_policy"),
    ],
)
async def test_an_option_out_of_bounds_is_named(
    running: RunningServer, options: dict[str, object], field: str
) -> None:
    request = pb.TranslateRequest(texts=["Ja."], options=pb.DecodingOptions(**options), **GERMAN)
    assert await violated_fields(running, request) == [field]


async def test_all_that_is_wrong_is_told_at_once(running: RunningServer) -> None:
    request = pb.TranslateRequest(
        texts=["Ja.", "x" * 501], options=pb.DecodingOptions(beam_size=0, length_penalty=-1), **GERMAN
    )
    assert await violated_fields(running, request) == [
        "texts[1]",
        "options.beam_size",
        "options.length_penalty",
    ]


@pytest.mark.parametrize(
    ("prefix", "max_output_tokens", "words"),
    [
        ("x" * 4001, None, "a prefix takes 4000; shorten it"),
        ("x" * 1200, None, "it must have fewer than max_output_tokens, 1024; shorten it"),
        (
            "x",
            1,
            "has 2 tokens, and it must have fewer than max_output_tokens, 1; shorten it, or raise that",
        ),
        ("No 日", None, "characters that the model cannot write; leave them out"),
    ],
)
async def test_a_target_prefix_that_no_translation_can_begin_with_is_refused(
    running: RunningServer, prefix: str, max_output_tokens: int | None, words: str
) -> None:
    options = pb.DecodingOptions(target_prefix=prefix, max_output_tokens=max_output_tokens)
    request = pb.TranslateRequest(texts=["Ja."], options=options, **GERMAN)
    assert await violated_fields(running, request) == ["options.target_prefix"]
    assert (await failure(running.stub.Translate(request))).details().endswith(words)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"model": "é" * 10_000}, grpc.StatusCode.NOT_FOUND),
        ({"source_language": "é" * 10_000, "target_language": "é" * 10_000}, grpc.StatusCode.NOT_FOUND),
        ({"model": "de-en", "source_language": "é" * 10_000}, grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
async def test_a_name_beyond_measure_is_repeated_in_part(
    running: RunningServer, fields: dict[str, str], code: grpc.StatusCode
) -> None:
    error = await failure(running.stub.Translate(pb.TranslateRequest(texts=["Ja."], **fields)))
    assert error.code() is code
    assert detail(error, error_details_pb2.ErrorInfo()).reason
    assert "é…'" in error.details()


async def test_a_message_over_the_limit_is_refused(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_message_bytes=1000))
    error = await failure(running.stub.Translate(pb.TranslateRequest(texts=["x" * 2000], **GERMAN)))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert await translate(running, "Ja.")


async def test_an_answer_may_be_larger_than_a_request(start_server: StartServer) -> None:
    running = await start_server(limits=RequestLimits(max_message_bytes=1000))
    assert len(await translate(running, *["Ja."] * 60)) == 60
