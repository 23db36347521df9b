"""Prometheus metrics of callers, by name, where the server asks who calls; and of HTTP.

What is translated over HTTP counts in the models' own, as over gRPC.
"""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from dragoman_server.metrics.series import LATENCY_BUCKETS

MAX_NAMES = 200
"""So many callers have series of their own, those that called first."""
REST = "other"
"""All further ones together."""


class CallerMetrics:
    """The characters that each caller had, and its refused calls. Callers without a name count nowhere
    here."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._names: set[str] = set()
        counter, caller = partial(Counter, registry=registry), ("caller",)
        self._calls = counter("dragoman_caller_calls_total", "Calls let in, by caller.", caller)
        self._in_progress = Gauge(
            "dragoman_caller_calls_in_progress", "Calls in progress, by caller.", caller, registry=registry
        )
        self._characters = counter(
            "dragoman_caller_characters_total", "Characters of texts translated or linked, by caller.", caller
        )
        self._refusals = counter(
            "dragoman_caller_refusals_total",
            "Calls and items refused for a limit of --caller-limits, by caller and limit.",
            ("caller", "limit"),
        )

    def on_enter(self, name: str | None) -> None:
        if name is not None:
            self._calls.labels(self._label(name)).inc()
            self._in_progress.labels(self._label(name)).inc()

    def on_leave(self, name: str | None) -> None:
        """It is answered, or will never be."""
        if name is not None:
            self._in_progress.labels(self._label(name)).dec()

    def on_characters(self, name: str | None, number: int) -> None:
        if name is not None:
            self._characters.labels(self._label(name)).inc(number)

    def on_refusal(self, name: str | None, limit: str) -> None:
        """A call or an item of a stream was refused."""
        if name is not None:
            self._refusals.labels(self._label(name), limit).inc()

    def _label(self, name: str) -> str:
        if name not in self._names:
            if len(self._names) >= MAX_NAMES:
                return REST
            self._names.add(name)
        return name


class HttpMetrics:
    """Labels are routes and statuses: never a path that a caller made up."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        self._requests = counter(
            "dragoman_http_requests_total", "Requests over HTTP ended.", ("route", "status")
        )
        self._seconds = Histogram(
            "dragoman_http_request_seconds",
            "From a request's head to the end of its answer.",
            ("route",),
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        self.connections = Gauge(
            "dragoman_http_connections", "Connections over HTTP that are open.", registry=registry
        )
        self.refused_connections = counter(
            "dragoman_http_refused_connections_total", "Connections over HTTP beyond --max-http-connections."
        )

    def on_request(self, route: str, status: int, seconds: float) -> None:
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
