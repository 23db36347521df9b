"""The log in the metrics: how many of its lines are lost."""

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from dragoman_server.logs import Log


class LogMetrics(Collector):
    """Tells what a log counts."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def collect(self) -> Iterator[Metric]:
        """Collects the counter of dropped lines."""
        yield CounterMetricFamily(
            "dragoman_log_lines_dropped",
            "Lines of the log that are lost because nobody reads it.",
            value=self._log.num_dropped,
        )
