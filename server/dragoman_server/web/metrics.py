"""Prometheus metrics of HTTP. What is translated counts in the models' own, as over gRPC."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from dragoman_server.metrics.series import LATENCY_BUCKETS


class HttpMetrics:
    """Labels are routes and statuses: never a path that a caller made up."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "dragoman_http_requests_total",
            "Requests over HTTP ended.",
            ("route", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "dragoman_http_request_seconds",
            "From a request's head to the end of its answer.",
            ("route",),
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        self._connections = Gauge(
            "dragoman_http_connections", "Connections over HTTP that are open.", registry=registry
        )
        self._refused = Counter(
            "dragoman_http_refused_connections_total",
            "Connections over HTTP beyond --max-http-connections.",
            registry=registry,
        )

    def watch_connections(self, number: Callable[[], int]) -> None:
        """Has it asked whenever the metrics are read."""
        self._connections.set_function(number)

    def on_request(self, route: str, status: int, seconds: float) -> None:
        """A request ended."""
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def on_refused_connection(self) -> None:
        """Counts a connection that there was no room for."""
        self._refused.inc()
