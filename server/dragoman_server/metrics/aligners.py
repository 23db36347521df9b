"""The metrics of one saved aligner, among those of models: its requests, and what it linked."""

from dragoman_server.engine.request import Priority
from dragoman_server.metrics.series import Series
from dragoman_server.metrics.translation import OUTCOMES, Metrics


class AlignerMetrics:
    """All at 0 once it is served."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self.key = f"aligner:{name}"
        """Prefix of an aligner's name where models are named: their names have no colon."""
        # It has no version, and does not know its languages.
        self._series = Series((self.key, "", "", ""))
        self._requests = {outcome: self._series.counter(metrics.requests, outcome) for outcome in OUTCOMES}
        self._request_seconds = self._series.by_priority(metrics.request_seconds)
        self._pairs = self._series.counter(metrics.pairs)

    def on_request(self, *, outcome: str, priority: Priority, seconds: float) -> None:
        """An AlignTexts call ended; `outcome` is the name of its status code."""
        self._requests[outcome].inc()
        self._request_seconds[priority].observe(seconds)

    def on_pairs(self, number: int) -> None:
        """So many texts and translations were linked."""
        self._pairs.inc(number)

    def on_end(self) -> None:
        """It is not served any more."""
        self._series.end()
