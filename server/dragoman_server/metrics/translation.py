"""Prometheus metrics of models, and of aligners among them, in a registry that is handed in.

A model's series are there from its loading to its end: a server that reloads for years shows what it has.
Labels come from closed sets: never a caller's text, key or address.
"""

from collections import Counter as Count
from collections.abc import Mapping
from functools import partial

from dragoman_bundle import Manifest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from dragoman_server.engine.events import BatchStepped, EngineLost, Event, SentenceEnded
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.engine.request import Priority
from dragoman_server.metrics.engine import EngineFamilies, EngineMetrics
from dragoman_server.metrics.quality import QualityFamilies, QualityMetrics, TextFigures
from dragoman_server.metrics.series import LATENCY_BUCKETS, MODEL_LABELS, Series

# How a request whose model is known can end, as status codes.
OUTCOMES = ("OK", "CANCELLED", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE",
             "INTERNAL")  # fmt: skip
# Jobs wait for each other, and would hide how long people do.
_WAITING = (*MODEL_LABELS, "priority")


class Metrics:
    """The families, each but the server's own labelled by model."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.num_models: Count[tuple[str, ...]] = Count()
        """Number of models that share series, by labels: the old one and the new, where one came again."""
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        total = partial(Counter, labelnames=MODEL_LABELS, registry=registry)
        latency = partial(Histogram, buckets=LATENCY_BUCKETS, registry=registry)

        outcome = (*MODEL_LABELS, "outcome")
        self.requests = counter("dragoman_requests_total", "Calls and stream items ended.", outcome)
        self.request_seconds = latency(
            "dragoman_request_seconds", "From a request's arrival to its end.", _WAITING
        )
        self.texts = total("dragoman_texts_total", "Texts translated.")
        self.pairs = total("dragoman_aligned_pairs_total", "Texts and translations whose words were linked.")
        self.source_tokens = total("dragoman_source_tokens_total", "Source tokens, ends included.")
        self.target_tokens = total("dragoman_target_tokens_total", "Target tokens, ends included.")
        self.splits = total("dragoman_splits_total", "Texts with a sentence cut for its length.")
        self.truncations = total("dragoman_truncations_total", "Texts with a sentence truncated.")
        self.queue_seconds = latency(
            "dragoman_queue_seconds", "Wait for a batch, of texts' slowest sentences.", _WAITING
        )
        self.encode_seconds = latency(
            "dragoman_encode_seconds", "Encoding, of texts' slowest sentences.", _WAITING
        )
        self.decode_seconds = latency(
            "dragoman_decode_seconds", "Search, of texts' slowest sentences.", _WAITING
        )
        self.text_seconds = latency(
            "dragoman_text_seconds",
            "Cutting a request's texts and joining their translations, waits for a thread among it.",
            _WAITING,
        )
        self.engine = EngineFamilies(registry)
        self.quality = QualityFamilies(registry)
        self.model_info = gauge(
            "dragoman_model_info",
            "1 for each model that is loaded.",
            (*MODEL_LABELS, "architecture", "precision"),
        )
        self.model_loaded = gauge(
            "dragoman_model_loaded",
            "1 for each model that is loaded, 0 for one that a request would load.",
            MODEL_LABELS,
        )
        self.load_seconds = latency(
            "dragoman_model_load_seconds", "Loading a model that a request asked for.", MODEL_LABELS
        )
        self.load_failures = total("dragoman_model_load_failures_total", "Times a model could not be loaded.")
        self.provider_info = gauge(
            "dragoman_provider_info",
            "1 for each graph and the execution provider it really runs on.",
            (*MODEL_LABELS, "graph", "provider"),
        )
        self.serving = gauge("dragoman_serving", "1 while the server takes calls, as its health tells.")
        self.last_reload_successful = gauge(
            "dragoman_last_reload_successful",
            "1 unless the models folder, the tokens or a renewed certificate could not be read again.",
        )
        self.last_reload = gauge(
            "dragoman_last_reload_timestamp_seconds",
            "When the models folder was last read anew, or for the first time.",
        )
        self.refused_bundles = gauge(
            "dragoman_refused_bundles",
            "Bundles in the models folder that are not served as they are.",
        )


class ModelMetrics:
    """The metrics of one model, all at 0 once it is served; hears what its engines tell."""

    def __init__(self, metrics: Metrics, manifest: Manifest) -> None:
        """Shows nothing yet: a model that is not served after all leaves nothing behind."""
        self._metrics = metrics
        self._labels = (
            manifest.name,
            manifest.version,
            manifest.source_language,
            manifest.target_language,
        )
        self._architecture = manifest.architecture.family
        self._series = Series(self._labels)
        # One that came again under the same name has the gauges then.
        self._is_retired = False

    def on_serve(self) -> None:
        """The model takes requests from now on, and may be loaded later."""
        metrics = self._metrics
        metrics.num_models[self._labels] += 1
        counter, histogram = self._series.counter, self._series.histogram
        by_priority = self._series.by_priority
        self._requests = {outcome: counter(metrics.requests, outcome) for outcome in OUTCOMES}
        self._request_seconds = by_priority(metrics.request_seconds)
        self._texts = counter(metrics.texts)
        self._pairs = counter(metrics.pairs)
        self._source_tokens = counter(metrics.source_tokens)
        self._target_tokens = counter(metrics.target_tokens)
        self._splits = counter(metrics.splits)
        self._truncations = counter(metrics.truncations)
        self._queue_seconds = by_priority(metrics.queue_seconds)
        self._encode_seconds = by_priority(metrics.encode_seconds)
        self._decode_seconds = by_priority(metrics.decode_seconds)
        self._text_seconds = by_priority(metrics.text_seconds)
        self._load_seconds = histogram(metrics.load_seconds)
        self._load_failures = counter(metrics.load_failures)
        self._engine = EngineMetrics(metrics.engine, self._series)
        self._quality = QualityMetrics(metrics.quality, self._series)
        metrics.model_loaded.labels(*self._labels).set(0)

    def on_load(self, *, engine: EnginePool, precision: str, providers: Mapping[str, str]) -> None:
        """The model translates; `providers` says by graph where it runs. Gauges ask the engine when read."""
        self._engine.on_start(engine.num_engines)
        if self._is_retired:
            return
        metrics = self._metrics
        metrics.model_loaded.labels(*self._labels).set(1)
        self._series.gauge(metrics.model_info, self._architecture, precision).set(1)
        for graph, provider in providers.items():
            self._series.gauge(metrics.provider_info, graph, provider).set(1)
        self._engine.show(engine)

    def on_load_seconds(self, seconds: float) -> None:
        """A request had the model loaded, which took so long."""
        self._load_seconds.observe(seconds)

    def on_load_failure(self) -> None:
        """It could not be loaded."""
        self._load_failures.inc()

    def on_unload(self) -> None:
        """The model does not translate any more, until it is loaded again."""
        if self._is_retired:
            return
        self._series.end_gauges()
        self._metrics.model_loaded.labels(*self._labels).set(0)

    def on_retire(self) -> None:
        """The model takes no more requests: what it is goes, and what it has done stays until its end."""
        self.on_unload()
        self._is_retired = True
        self._metrics.model_loaded.remove(*self._labels)

    def on_end(self) -> None:
        """Nobody uses the retired model any more: what it has done goes too."""
        num_models = self._metrics.num_models
        num_models[self._labels] -= 1
        if num_models[self._labels]:
            return
        del num_models[self._labels]
        self._series.end()

    def on_request(self, *, outcome: str, priority: Priority, seconds: float) -> None:
        """A Translate call or an item of a stream ended; `outcome` is the name of its status code."""
        self._requests[outcome].inc()
        self._request_seconds[priority].observe(seconds)

    def on_text(self, text: TextFigures, priority: Priority) -> None:
        """A text was translated."""
        self._texts.inc()
        self._source_tokens.inc(text.num_source_tokens)
        self._target_tokens.inc(text.num_target_tokens)
        self._splits.inc(text.split)
        self._truncations.inc(text.truncated)
        self._quality.on_text(text)
        if text.log_probability is not None:
            stages = self._queue_seconds, self._encode_seconds, self._decode_seconds
            for stage, seconds in zip(stages, text.seconds, strict=True):
                stage[priority].observe(seconds)

    def on_text_work(self, seconds: float, priority: Priority) -> None:
        """A request's texts were cut, and their translations joined, in so long."""
        self._text_seconds[priority].observe(seconds)

    def on_pairs(self, number: int) -> None:
        """So many texts and translations were linked."""
        self._pairs.inc(number)

    def on_event(self, event: Event) -> None:
        """An engine tells something."""
        # The others come before the model is served, too.
        if isinstance(event, BatchStepped | SentenceEnded | EngineLost):
            self._engine.on_event(event)


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
