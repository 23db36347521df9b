"""Every limit has an option, a default that is safe, and a refusal that says so: none is left out."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import click
import grpc
import pytest
from click.testing import CliRunner
from tests.server.calls import GERMAN, failure
from tests.server.conftest import StartServer

from dragoman.v1 import translation_pb2 as pb
from dragoman_server.cli import serve
from dragoman_server.config import EngineConfig, RequestLimits, ServerConfig
from dragoman_server.options import Option, options
from dragoman_server.service.callers import NAMES

TIGHT = RequestLimits(
    max_texts=2,
    max_text_characters=60,
    max_text_tokens=8,
    max_beam_size=2,
    max_output_tokens=10,
    max_terms=1,
    max_patterns=1,
    max_message_bytes=2_000,
)


def request(*texts: str, **settings: Any) -> pb.TranslateRequest:
    return pb.TranslateRequest(texts=texts or ("Ja.",), **GERMAN, **settings)


REFUSED = {
    "max_texts": (request("a", "b", "c"), "texts: holds 3 texts, and a call takes 2; send several calls"),
    "max_text_characters": (request("a" * 61), "has 61 characters, and a text takes 60; cut it up"),
    "max_text_tokens": (request("abcdefghijkl"), "and a text takes 8"),
    "max_beam_size": (request(options=pb.DecodingOptions(beam_size=3)), "is 3; it must be from 1 to 2"),
    "max_output_tokens": (
        request(options=pb.DecodingOptions(max_output_tokens=11)),
        "is 11; it must be from 1 to 10",
    ),
    "max_terms": (
        request(protection=pb.Protection(do_not_translate=["a", "b"])),
        "are 2 with do_not_translate and forbidden, and a call takes 1",
    ),
    "max_patterns": (
        request(protection=pb.Protection(patterns=["a", "b"])),
        "are 2, and a call takes 1; join some with |",
    ),
    "max_message_bytes": (request("a" * 2_001), "larger than max (2"),
}
"""What a server with TIGHT says no to, and its words."""

HELD_BY = {
    "max_interactive_tokens": "test_a_long_interactive_request_is_decoded_as_bulk",
    "max_stream_items": "test_no_more_items_are_taken_than_fit",
    "max_stream_idle_seconds": "test_an_idle_stream_is_ended",
    "max_calls": "test_one_call_too_many_is_told_when_to_come_again",
    "max_connections": "test_connections_beyond_their_number_are_closed_and_leave_room_for_the_metrics",
    "max_connection_age_seconds": "test_a_connection_that_is_old_is_replaced_and_no_call_is_harmed",
    "max_http_connections": "test_a_thousand_connections_leave_grpc_alone",
    "max_http_body_bytes": "test_a_body_that_is_too_large_is_told_so_while_it_comes",
    "max_http_seconds": "test_slow_callers_are_hung_up_on",
    "max_document_seconds": "test_a_document_takes_no_longer_than_it_may",
    "max_kept_file_bytes": "test_files_make_room_for_younger_ones",
    "max_kept_file_seconds": "test_a_file_can_be_fetched_for_a_while",
    "max_health_watches": "test_only_so_many_may_watch_the_health",
    "max_health_watches_per_host": "test_only_so_many_may_watch_the_health",
    "max_score_memory": "test_a_large_vocabulary_has_fewer_rows_decoded_at_a_time",
    "max_rows": "test_rows_are_the_budget",
    "max_source_tokens": "test_a_limit_that_leaves_no_room_is_refused",
    "max_bulk_share": "test_bulk_fills_no_more_than_its_share_of_the_queue",
    "max_bulk_slowdown": "test_a_limit_that_leaves_no_room_is_refused",
    "max_aligned_words": "test_what_is_wrong_is_told_by_field",
    "max_queue": "test_a_full_queue_says_when_to_come_again",
    "max_queue_seconds": "test_no_more_may_wait_than_is_answered_in_time_by_priority",
    "max_loaded_models": "test_all_are_answered_and_never_more_than_fit_are_loaded",
    "max_reload_seconds": "test_a_reload_that_takes_too_long_is_given_up_and_told",
    "calls": "test_calls_at_once_are_bounded_and_a_cancelled_one_makes_room",
    "calls_per_minute": "test_calls_are_bounded_at_once_and_by_the_minute",
    "characters_per_minute": "test_no_minute_ever_has_more_than_the_limit",
    "characters_per_day": "test_a_caller_beyond_its_day_is_refused_by_both_doors_and_others_are_not",
}
"""The test of each other limit."""

UNLIMITED = {
    # A server alone needs neither; gRPC's connections cost nothing by their age.
    "max_connection_age_seconds",
    # All models in the folder are the operator's own.
    "max_loaded_models",
}
"""Limits that are none by default, each for a reason."""


def limits() -> Iterator[Option]:
    return (each for each in options(ServerConfig) if each.name.startswith("max_"))


def test_every_limit_is_refused_by_one_of_these_tests() -> None:
    known = set(REFUSED) | set(HELD_BY)
    assert known == {each.name for each in limits()} | set(NAMES.values())
    assert {field.name for field in fields(RequestLimits)} <= known
    tests = {
        name
        for path in Path(__file__).parents[1].rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert set(HELD_BY.values()) <= tests


@pytest.mark.parametrize("limit", list(limits()), ids=lambda each: each.name)
def test_every_limit_has_an_option_that_refuses_nonsense_and_a_default(limit: Option) -> None:
    assert limit.default is not MISSING
    assert (limit.default is None) is (limit.name in UNLIMITED)
    flag = next(
        each.opts[0] for each in serve.params if isinstance(each, click.Option) and each.name == limit.name
    )
    assert flag == "--" + limit.name.replace("_", "-")
    for nonsense in ("-1", "0", "many"):
        ran = CliRunner().invoke(serve, ["--models", "nowhere", flag, nonsense])
        assert (ran.exit_code, flag in ran.output) == (2, True), ran.output


async def test_what_is_beyond_a_limit_of_a_request_is_refused_with_the_limit_and_the_way_out(
    start_server: StartServer,
) -> None:
    running = await start_server(limits=TIGHT, engine=EngineConfig(device="cpu", threads=1))
    cases: Mapping[str, tuple[pb.TranslateRequest, str]] = REFUSED
    for name, (beyond, words) in cases.items():
        error = await failure(running.stub.Translate(beyond))
        assert words in str(error.details()), name
        own = grpc.StatusCode.RESOURCE_EXHAUSTED if name == "max_message_bytes" else None
        assert error.code() is (own or grpc.StatusCode.INVALID_ARGUMENT), name
    assert (await running.stub.Translate(request())).translations[0].text == "Ja."
