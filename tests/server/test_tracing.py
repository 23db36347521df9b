"""Traces of a real server, as a real collector of OTLP receives them."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace import TracerProvider
from tests.server.access import ADA, shows
from tests.server.calls import GERMAN
from tests.server.conftest import RunningServer, StartServer
from tests.server.web.conftest import ask

from dragoman import Client
from dragoman.v1 import translation_pb2 as pb
from dragoman_server.options import MissingExtraError

TRACE_ID, PARENT_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACE_PARENT = f"00-{TRACE_ID}-{PARENT_ID}-01"


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.service_names: set[str] = set()
        self.port = 0

    def Export(  # noqa: N802
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        for resource in request.resource_spans:
            attributes = {each.key: each.value.string_value for each in resource.resource.attributes}
            self.service_names.add(attributes["service.name"])
            for scope in resource.scope_spans:
                self.spans += scope.spans
        return trace_service_pb2.ExportTraceServiceResponse()

    def children(self, parent: Span) -> list[Span]:
        of_parent = [span for span in self.spans if span.parent_span_id == parent.span_id]
        return sorted(of_parent, key=lambda span: (span.start_time_unix_nano, span.end_time_unix_nano))

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = grpc.server(ThreadPoolExecutor(2))
    own = Collector()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(own, server)
    own.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield own
    server.stop(None).wait()


def start_traced(start_server: StartServer, collector: Collector, **config: object) -> "asyncio.Future":
    endpoint = f"http://127.0.0.1:{collector.port}"
    return asyncio.ensure_future(start_server(otlp_endpoint=endpoint, host="127.0.0.1", **config))


def check_stages(collector: Collector, call: Span, num_requests: int) -> None:
    """Its requests lie within it, their stages within these, one after the other."""
    requests = collector.children(call)
    assert [span.name for span in requests] == ["de-en/1"] * num_requests
    for request in requests:
        assert call.start_time_unix_nano <= request.start_time_unix_nano
        assert request.end_time_unix_nano <= call.end_time_unix_nano
        stages = collector.children(request)
        assert [stage.name for stage in stages] == ["text", "queue", "encode", "decode", "text"]
        moments = [request.start_time_unix_nano]
        for stage in stages:
            moments += [stage.start_time_unix_nano, stage.end_time_unix_nano]
            assert stage.trace_id == call.trace_id
        moments.append(request.end_time_unix_nano)
        assert moments == sorted(moments)
        encode, decode = stages[2], stages[3]
        assert encode.end_time_unix_nano > encode.start_time_unix_nano
        assert decode.end_time_unix_nano > decode.start_time_unix_nano


async def test_a_call_s_spans_nest_in_its_caller_s_trace_and_the_log_names_them(
    start_server: StartServer, collector: Collector, tokens: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    running: RunningServer = await start_traced(start_server, collector, http_port=0, tokens=tokens)
    call = running.stub.Translate(
        pb.TranslateRequest(texts=["Ja. Nein.", "Das ist gut."], **GERMAN),
        metadata=(*shows(ADA), ("traceparent", TRACE_PARENT)),
    )
    await call
    told = dict(await call.initial_metadata())["traceresponse"]
    over_http = await asyncio.to_thread(
        ask,
        f"http://127.0.0.1:{running.server.http_port}/v1/translate",
        b'{"texts": ["Ja."], "sourceLanguage": "de", "targetLanguage": "en"}',
        {"Authorization": f"Bearer {ADA}", "traceparent": TRACE_PARENT},
    )
    with pytest.raises(grpc.aio.AioRpcError):
        await running.stub.Translate(pb.TranslateRequest(texts=["Ja."], **GERMAN))
    assert await running.server.drain()
    first, second, refused = collector.named("Translate")
    assert collector.service_names == {"dragoman"}
    for span, answer in ((first, told), (second, over_http.headers["traceresponse"])):
        assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE_ID, PARENT_ID)
        assert answer == f"00-{TRACE_ID}-{span.span_id.hex()}-01"
        assert span.kind == Span.SPAN_KIND_SERVER
        check_stages(collector, span, 1)
    attributes = {each.key: each.value for each in first.attributes}
    assert attributes["dragoman.caller"].string_value == "ada"
    assert attributes["dragoman.characters"].int_value == 21
    assert (refused.parent_span_id, collector.children(refused)) == (b"", [])
    assert refused.status.code == Status.STATUS_CODE_UNSET
    logged = [vars(record) for record in caplog.records if record.message == "call"]
    assert [(each["trace_id"], each["span_id"]) for each in logged] == [
        (span.trace_id.hex(), span.span_id.hex()) for span in (first, second, refused)
    ]


async def test_items_and_linked_pairs_are_requests(start_server: StartServer, collector: Collector) -> None:
    running: RunningServer = await start_traced(start_server, collector)

    def call() -> str:
        tracer = TracerProvider().get_tracer("a caller's own")
        with Client(f"127.0.0.1:{running.server.port}") as client, tracer.start_as_current_span("job") as own:
            list(client.translate_stream([(1, "Ja."), (2, "Nein.")], source="de", target="en"))
            client.align([("Ja.", "Ja.")], source="de", target="en")
            return trace.format_trace_id(own.get_span_context().trace_id)

    trace_id = await asyncio.to_thread(call)
    assert await running.server.drain()
    for name, num_requests in (("TranslateStream", 2), ("AlignTexts", 1)):
        (span,) = collector.named(name)
        # The client tells of the trace that its caller is in.
        assert span.trace_id.hex() == trace_id
        check_stages(collector, span, num_requests)


async def test_a_failed_request_is_an_error_and_a_collector_that_is_gone_is_no_harm(
    start_server: StartServer, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    running: RunningServer = await start_traced(start_server, collector)

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("dragoman_server.service.translating.prepare", fail)
    with pytest.raises(grpc.aio.AioRpcError, match="internal error"):
        await running.stub.Translate(pb.TranslateRequest(texts=["Ja."], **GERMAN))
    assert await running.server.drain()
    (span,) = collector.named("Translate")
    assert (span.status.code, span.status.message) == (Status.STATUS_CODE_ERROR, "INTERNAL")
    monkeypatch.undo()
    gone = await start_server(otlp_endpoint="http://127.0.0.1:1")
    monkeypatch.setattr("dragoman_server.tracing.CLOSE_SECONDS", 0.1)
    assert (await gone.stub.Translate(pb.TranslateRequest(texts=["Ja."], **GERMAN))).translations
    assert await gone.server.drain()


def test_without_an_endpoint_no_library_of_it_is_loaded() -> None:
    script = "import dragoman, dragoman_server.server, sys; print([m for m in sys.modules if 'opentel' in m])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


async def test_a_missing_extra_is_told(start_server: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "dragoman_server.tracing", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    with pytest.raises(MissingExtraError, match=r"'\.\[tracing\]'"):
        await start_server(otlp_endpoint="http://localhost:4317")
