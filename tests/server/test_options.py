"""The options of `dragoman serve`: their fields, their page, and the limits, of which none is left out."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import click
import grpc
import pytest
from click.testing import CliRunner
from tests.server.calls import GERMAN, failure
from tests.server.conftest import CPU, StartServer
from tests.test_documents import known_tests

import dragoman_server.server
from dragoman.v1 import translation_pb2 as pb
from dragoman_server.cli import serve
from dragoman_server.config import EngineConfig, RequestLimits, ServerConfig
from dragoman_server.logs import Log
from dragoman_server.options import Option, options
from dragoman_server.reference import reference
from dragoman_server.service.callers import NAMES

TEXTS = {
    "host": "127.0.0.9",
    "metrics_host": "127.0.0.8",
    "models": "bundles",
    "tls_certificate": "a.pem",
    "tls_key": "b.pem",
    "tokens": "names",
    "caller_limits": "limits",
    "tls_client_ca": "ca.pem",
    "http_cors_origins": "https://example.org",
    "http_trusted_proxies": "10.0.0.0/8",
    "otlp_endpoint": "http://localhost:4317",
    "device": "cuda",
    "precision": "fp32",
    "batching": "request",
    "log_format": "text",
    "max_bulk_share": "0.5",
}


def leaves(config: object) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(config):  # type: ignore[arg-type]
        value = getattr(config, field.name)
        found |= leaves(value) if is_dataclass(value) else {field.name: value}
    return found


def test_every_option_reaches_its_field(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a value of its own, and none its default, so that no two can be exchanged."""
    given: list[ServerConfig] = []

    async def take(config: ServerConfig, log: Log) -> bool:
        given.append(config)
        return True

    monkeypatch.setattr(dragoman_server.server, "serve", take)
    options = [each for each in serve.params if isinstance(each, click.Option) and each.name is not None]
    expected: dict[str, str] = {}
    arguments = []
    for number, option in enumerate(options, start=31):
        field = option.name
        if option.is_flag:
            arguments.append(option.secondary_opts[0])
            expected[field] = "False"
        else:
            # Those that are compared with others grow with them.
            expected[field] = TEXTS.get(option.name, str(number * (100 if field == "max_rows" else 1)))
            arguments += [option.opts[0], expected[field]]
    result = CliRunner().invoke(serve, arguments)
    assert result.exit_code == 0, result.output
    found = leaves(given[0])
    assert set(found) == set(expected)
    for field, value in expected.items():
        [given_value] = found[field] if isinstance(found[field], tuple) else [found[field]]
        assert str(given_value).removesuffix(".0") == value, field
    for type_ in (ServerConfig, RequestLimits, EngineConfig):
        for field in fields(type_):
            assert field.default is MISSING or found[field.name] != field.default, field.name


PAGE = Path(__file__).parents[2] / "docs/reference/server.md"


def test_the_page_is_what_the_configuration_says() -> None:
    assert PAGE.read_text() == reference(), (
        "write it anew: python -m dragoman_server.reference > docs/reference/server.md"
    )


@pytest.mark.parametrize(
    ("config", "name", "value", "said"),
    [
        (RequestLimits, "max_texts", 0, "max_texts is 0; it must be at least 1"),
        (RequestLimits, "max_message_bytes", 2**31, "it must be at least 1 and at most 2147483647"),
        (EngineConfig, "max_bulk_share", 1.5, "max_bulk_share is 1.5; it must be above 0 and at most 1"),
        (EngineConfig, "max_queue_seconds", float("nan"), "max_queue_seconds is nan; it must be above 0"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(config: type, name: str, value: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        config(**{name: value})


def test_the_help_has_the_groups_of_the_page() -> None:
    text = CliRunner().invoke(serve, ["--help"], prog_name="serve", terminal_width=100).output
    page = PAGE.read_text()
    headings = re.findall(r"^## (.*)", page, re.MULTILINE)
    assert re.findall(r"^(?!Usage|Help)(\w.*):$", text, re.MULTILINE) == headings
    for first in re.findall(r"^## .*\n\n.*\n.*\n\| `(--[\w-]+)`", page, re.MULTILINE):
        assert re.search(rf":\n  {first}\b", text), first


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
    "max_interactive_tokens": "test_a_long_interactive_request_is_bulk",
    "max_stream_items": "test_no_more_items_are_taken_than_fit",
    "max_stream_idle_seconds": "test_an_idle_stream_is_ended",
    "max_calls": "test_one_call_too_many_is_told_when_to_return",
    "max_connections": "test_connections_beyond_their_number_are_closed",
    "max_connection_age_seconds": "test_a_connection_that_is_old_is_replaced_and_no_call_is_harmed",
    "max_http_connections": "test_a_thousand_connections_leave_grpc_alone",
    "max_http_body_bytes": "test_a_body_that_is_too_large_is_told_so_while_it_comes",
    "max_http_seconds": "test_slow_callers_are_cut_off",
    "max_document_seconds": "test_a_document_ends_in_its_time",
    "max_kept_file_bytes": "test_files_make_room_for_younger_ones",
    "max_kept_file_seconds": "test_a_file_can_be_fetched_for_a_while",
    "max_health_watches": "test_only_so_many_may_watch_the_health",
    "max_health_watches_per_host": "test_only_so_many_may_watch_the_health",
    "max_score_memory": "test_a_large_vocabulary_has_fewer_rows_decoded_at_a_time",
    "max_rows": "test_rows_are_the_budget",
    "max_source_tokens": "test_a_limit_that_leaves_no_room_is_refused",
    "max_bulk_share": "test_the_queue_takes_all_or_nothing_and_of_bulk_no_more_than_its_share",
    "max_bulk_slowdown": "test_a_limit_that_leaves_no_room_is_refused",
    "max_aligned_words": "test_what_is_wrong_is_told_by_field",
    "max_queue": "test_a_full_queue_says_when_to_come_again",
    "max_queue_seconds": "test_no_more_may_wait_than_is_answered_in_time_by_priority",
    "max_loaded_models": "test_all_are_answered_and_never_more_than_fit_are_loaded",
    "max_reload_seconds": "test_a_reload_that_takes_too_long_is_given_up_and_told",
    "calls": "test_calls_at_once_are_bounded_and_a_cancelled_one_makes_room",
    "calls_per_minute": "test_calls_are_bounded_at_once_and_by_the_minute",
    "characters_per_minute": "test_no_minute_ever_has_more_than_the_limit",
    "characters_per_day": "test_both_doors_refuse_beyond_a_day",
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
    assert set(HELD_BY.values()) <= known_tests()


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


async def test_what_is_beyond_a_limit_is_refused_with_the_way_out(start_server: StartServer) -> None:
    running = await start_server(limits=TIGHT, engine=CPU)
    cases: Mapping[str, tuple[pb.TranslateRequest, str]] = REFUSED
    for name, (beyond, words) in cases.items():
        error = await failure(running.stub.Translate(beyond))
        assert words in str(error.details()), name
        own = grpc.StatusCode.RESOURCE_EXHAUSTED if name == "max_message_bytes" else None
        assert error.code() is (own or grpc.StatusCode.INVALID_ARGUMENT), name
    assert (await running.stub.Translate(request())).translations[0].text == "Ja."
