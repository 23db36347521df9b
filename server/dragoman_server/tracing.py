"""Traces of calls, sent to a collector of OpenTelemetry's protocol. Imported only where they are asked for.

A call is a span, each of its requests to a model a child of it, and the stages of these are theirs.
"""

import os
import time
from collections.abc import Mapping
from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from dragoman_server.service.searching import Stages
from dragoman_server.service.statuses import Code
from dragoman_server.turns import run_in_daemon_thread, wait_for

CLOSE_SECONDS = 3.0
"""How long the last spans may take to be sent when the server ends."""

_PROPAGATOR = TraceContextTextMapPropagator()
# A caller's own doing is no failure of the server's.
_FAILURES = (Code.INTERNAL, Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.RESOURCE_EXHAUSTED)


class Tracing:
    """Where spans go. The SDK's own environment variables hold, such as OTEL_TRACES_SAMPLER."""

    def __init__(self, endpoint: str) -> None:
        """`endpoint`: http://HOST:PORT of a collector that takes OTLP over gRPC; https:// over TLS."""
        attributes = {SERVICE_VERSION: version("dragoman")}
        if "OTEL_SERVICE_NAME" not in os.environ:
            attributes[SERVICE_NAME] = "dragoman"
        self._provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
        self._tracer = self._provider.get_tracer("dragoman_server")

    def begin(self, method: str, carrier: Mapping[str, str]) -> "CallTrace":
        """A call begins, within the trace that `carrier` tells of, as `traceparent` (W3C), or a new one."""
        return CallTrace(self, method, carrier)

    async def close(self) -> None:
        """Sends what is left, as long as that takes no longer than CLOSE_SECONDS."""
        try:
            await wait_for(run_in_daemon_thread(self._provider.shutdown), CLOSE_SECONDS)
        except TimeoutError:
            return


class CallTrace:
    """The span of a call and those within it."""

    def __init__(self, tracing: Tracing, method: str, carrier: Mapping[str, str]) -> None:
        self._tracer = tracing._tracer
        now = time.monotonic()
        # One for all spans of the call, which then nest whatever is done to the clock of the day.
        self._epoch_nanoseconds = time.time_ns() - round(now * 1e9)
        self._span = self._tracer.start_span(
            method,
            context=_PROPAGATOR.extract(carrier),
            kind=SpanKind.SERVER,
            start_time=self._nanoseconds(now),
        )
        self._context = set_span_in_context(self._span)
        context = self._span.get_span_context()
        self.ids = {"trace_id": format_trace_id(context.trace_id), "span_id": format_span_id(context.span_id)}
        self.answer = f"00-{self.ids['trace_id']}-{self.ids['span_id']}-{context.trace_flags:02x}"
        """The answer's name of it, as `traceresponse` (W3C, Trace Context)."""

    def on_request(self, model: str, priority: str, outcome: Code, stages: Stages) -> None:
        """A request to a model has ended: a span with one for each stage."""
        attributes = {
            "dragoman.model": model,
            "dragoman.priority": priority,
            "dragoman.outcome": outcome.name,
        }
        came_at = self._nanoseconds(stages.came_at)
        span = self._tracer.start_span(model, self._context, attributes=attributes, start_time=came_at)
        within = set_span_in_context(span)
        for stage in stages.stages:
            began = self._nanoseconds(stage.began)
            child = self._tracer.start_span(stage.name, context=within, start_time=began)
            child.end(self._nanoseconds(stage.ended))
        span.end(self._nanoseconds(time.monotonic()))

    def end(self, outcome: Code, fields: Mapping[str, object]) -> None:
        """The call has ended; `fields` are those of its line in the log."""
        for name, value in fields.items():
            if isinstance(value, str | int | float):
                self._span.set_attribute(f"dragoman.{name}", value)
        self._span.set_attribute("dragoman.outcome", outcome.name)
        if outcome in _FAILURES:
            self._span.set_status(StatusCode.ERROR, outcome.name)
        self._span.end(self._nanoseconds(time.monotonic()))

    def _nanoseconds(self, seconds: float) -> int:
        """Since 1970, of a time on the clock of time.monotonic."""
        return self._epoch_nanoseconds + round(seconds * 1e9)
