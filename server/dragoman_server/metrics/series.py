"""The series of one model, in whatever families: made with its labels, and gone with it."""

from prometheus_client import Counter, Gauge, Histogram

from dragoman_server.engine.request import Priority

MODEL_LABELS = ("model", "version", "source", "target")
LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.4, 0.6, 1.0, 1.5, 2.5,
                   4.0, 6.0, 10.0, 15.0, 25.0, 40.0, 60.0)  # fmt: skip
"""Seconds, from 1 ms to 60 s."""


class Series:
    def __init__(self, labels: tuple[str, ...]) -> None:
        """`labels` are the values of MODEL_LABELS."""
        self.labels = labels
        # What the model is, rather than what it has done: with the labels in each.
        self._present: list[tuple[Gauge, tuple[str, ...]]] = []
        self._done: list[tuple[Counter | Histogram, tuple[str, ...]]] = []

    def gauge(self, family: Gauge, *labels: str) -> Gauge:
        """There while the model is loaded."""
        self._present.append((family, (*self.labels, *labels)))
        return family.labels(*self.labels, *labels)

    def counter(self, family: Counter, *labels: str) -> Counter:
        """There as long as the model is served."""
        self._done.append((family, (*self.labels, *labels)))
        return family.labels(*self.labels, *labels)

    def histogram(self, family: Histogram, *labels: str) -> Histogram:
        """There as long as the model is served."""
        self._done.append((family, (*self.labels, *labels)))
        return family.labels(*self.labels, *labels)

    def by_priority(self, family: Histogram) -> dict[Priority, Histogram]:
        return {priority: self.histogram(family, priority.value) for priority in Priority}

    def end_gauges(self) -> None:
        """The model is not loaded any more."""
        for family, labels in self._present:
            family.remove(*labels)
        self._present.clear()

    def end(self) -> None:
        """The model is not served any more."""
        for family, labels in self._done:
            family.remove(*labels)
