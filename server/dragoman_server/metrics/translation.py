"""Prometheus metrics of translation: their names, labels and buckets, in a registry that is handed in.

A model's series are there from its loading to its end: a server that reloads for years shows what it has.
Labels come from closed sets: never a caller's text, key or address.
"""

from collections import Counter as Count
from collections.abc import Mapping
from functools import partial

from dragoman_bundle import Manifest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from dragoman_server.engine.events import (
    BatchStepped,
    EngineLost,
    Event,
    GroupEncoded,
    Outcome,
    SentenceEnded,
)
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.engine.request import Priority
from dragoman_server.text.translated import TranslatedText
from dragoman_server.text.warnings import WarningKind

LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.25, 0.4, 0.6, 1.0, 1.5, 2.5,
                   4.0, 6.0, 10.0, 15.0, 25.0, 40.0, 60.0)  # fmt: skip
"""Seconds, from 1 ms to 60 s."""
STEP_BUCKETS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0)
"""Seconds of one decoder step."""
SIZE_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""Sentences or rows of one decoder step."""

# How a request whose model is known can end, as status codes.
_OUTCOMES = ("OK", "CANCELLED", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE",
             "INTERNAL")  # fmt: skip
_MODEL = ("model", "version", "source", "target")
# Jobs wait for each other, and would hide how long people do.
_WAITING = (*_MODEL, "priority")


class Metrics:
    """The families, each but the server's own labelled by model."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.num_models: Count[tuple[str, ...]] = Count()
        """By labels, how many models share their series: the old one and the new, where one came again."""
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        total = partial(Counter, labelnames=_MODEL, registry=registry)
        latency = partial(Histogram, buckets=LATENCY_BUCKETS, registry=registry)
        step = partial(Histogram, labelnames=_MODEL, buckets=STEP_BUCKETS, registry=registry)
        size = partial(Histogram, labelnames=_MODEL, buckets=SIZE_BUCKETS, registry=registry)

        outcome = (*_MODEL, "outcome")
        self.requests = counter("dragoman_requests_total", "Translate calls and stream items ended.", outcome)
        self.request_seconds = latency(
            "dragoman_request_seconds", "From a request's arrival to its end.", _WAITING
        )
        self.texts = total("dragoman_texts_total", "Texts translated.")
        self.pairs = total("dragoman_aligned_pairs_total", "Texts and translations whose words were linked.")
        self.sentences = counter("dragoman_sentences_total", "Sentences that left the engine.", outcome)
        self.source_tokens = total("dragoman_source_tokens_total", "Source tokens, ends included.")
        self.target_tokens = total("dragoman_target_tokens_total", "Target tokens, ends included.")
        self.splits = total("dragoman_splits_total", "Texts with a sentence cut for its length.")
        self.truncations = total("dragoman_truncations_total", "Texts with a sentence truncated.")
        self.warnings = counter(
            "dragoman_warnings_total",
            "Texts whose translation came with a warning, by kind.",
            (*_MODEL, "kind"),
        )
        self.queue_seconds = latency(
            "dragoman_queue_seconds", "Wait for a batch, of texts' slowest sentences.", _WAITING
        )
        self.decode_seconds = latency(
            "dragoman_decode_seconds", "Search, of texts' slowest sentences.", _MODEL
        )
        self.encode_seconds = latency("dragoman_encode_seconds", "Encoding one group of sentences.", _MODEL)
        self.step_seconds = step("dragoman_step_seconds", "Advancing a batch by one token.")
        self.step_sentences = size("dragoman_step_sentences", "Sentences in a decoder step.")
        self.step_rows = size("dragoman_step_rows", "Rows, sentences times beam, in a decoder step.")
        self.source_positions = total(
            "dragoman_step_source_positions_total", "Source positions in decoder steps, without padding."
        )
        self.padded_positions = total(
            "dragoman_step_padded_positions_total", "Source positions in decoder steps, padding included."
        )
        self.waiting = gauge(
            "dragoman_queue_sentences", "Sentences that wait for a place in a batch.", _WAITING
        )
        self.queue_limit = gauge(
            "dragoman_queue_limit_sentences", "Most that may wait beside the others that do.", _WAITING
        )
        self.queue_expected = gauge(
            "dragoman_queue_expected_seconds", "What those that wait are expected to take.", _WAITING
        )
        self.running = gauge("dragoman_running_sentences", "Sentences that are being decoded.", _MODEL)
        self.engines = gauge("dragoman_engines", "Engines that decode.", _MODEL)
        self.engine_restarts = total(
            "dragoman_engine_restarts_total", "Engines that ended or hung, and were started anew."
        )
        self.model_info = gauge(
            "dragoman_model_info",
            "1 for each model that is loaded.",
            (*_MODEL, "architecture", "precision"),
        )
        self.model_loaded = gauge(
            "dragoman_model_loaded",
            "1 for each model that is loaded, 0 for one that a request would load.",
            _MODEL,
        )
        self.load_seconds = latency(
            "dragoman_model_load_seconds", "Loading a model that a request asked for.", _MODEL
        )
        self.load_failures = total("dragoman_model_load_failures_total", "Times a model could not be loaded.")
        self.provider_info = gauge(
            "dragoman_provider_info",
            "1 for each graph and the execution provider it really runs on.",
            (*_MODEL, "graph", "provider"),
        )
        self.serving = gauge("dragoman_serving", "1 while the server takes calls, as its health tells.")
        self.last_reload_successful = gauge(
            "dragoman_last_reload_successful",
            "1 unless the models folder, the tokens or a renewed certificate could not be read again.",
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
        # What it is, rather than what it has done: gauges with the labels that it has in each.
        self._present: list[tuple[Gauge, tuple[str, ...]]] = []
        self._done: list[tuple[Counter | Histogram, tuple[str, ...]]] = []
        # One that came again under the same name has the gauges then.
        self._is_retired = False

    def on_serve(self) -> None:
        """The model takes requests from now on, and may be loaded later."""
        metrics = self._metrics
        metrics.num_models[self._labels] += 1
        self._requests = {outcome: self._counter(metrics.requests, outcome) for outcome in _OUTCOMES}
        self._request_seconds = self._by_priority(metrics.request_seconds)
        self._texts = self._counter(metrics.texts)
        self._pairs = self._counter(metrics.pairs)
        self._sentences = {outcome: self._counter(metrics.sentences, outcome.value) for outcome in Outcome}
        self._source_tokens = self._counter(metrics.source_tokens)
        self._target_tokens = self._counter(metrics.target_tokens)
        self._engine_restarts = self._counter(metrics.engine_restarts)
        self._splits = self._counter(metrics.splits)
        self._truncations = self._counter(metrics.truncations)
        self._warnings = {kind: self._counter(metrics.warnings, kind.value) for kind in WarningKind}
        self._queue_seconds = self._by_priority(metrics.queue_seconds)
        self._decode_seconds = self._histogram(metrics.decode_seconds)
        self._encode_seconds = self._histogram(metrics.encode_seconds)
        self._step_seconds = self._histogram(metrics.step_seconds)
        self._step_sentences = self._histogram(metrics.step_sentences)
        self._step_rows = self._histogram(metrics.step_rows)
        self._source_positions = self._counter(metrics.source_positions)
        self._padded_positions = self._counter(metrics.padded_positions)
        self._load_seconds = self._histogram(metrics.load_seconds)
        self._load_failures = self._counter(metrics.load_failures)
        metrics.model_loaded.labels(*self._labels).set(0)

    def on_load(self, *, engine: EnginePool, precision: str, providers: Mapping[str, str]) -> None:
        """The model translates; `providers` says by graph where it runs. Gauges ask the engine when read."""
        if self._is_retired:
            return
        metrics = self._metrics
        metrics.model_loaded.labels(*self._labels).set(1)
        self._present_at(metrics.model_info, self._architecture, precision).set(1)
        for graph, provider in providers.items():
            self._present_at(metrics.provider_info, graph, provider).set(1)
        self._present_at(metrics.running).set_function(lambda: engine.num_running)
        self._present_at(metrics.engines).set_function(lambda: engine.num_alive)
        for priority in Priority:
            waiting, limit = partial(engine.num_waiting, priority), partial(engine.max_waiting, priority)
            self._present_at(metrics.waiting, priority.value).set_function(waiting)
            self._present_at(metrics.queue_limit, priority.value).set_function(limit)
            expected = partial(engine.expected_seconds, priority)
            self._present_at(metrics.queue_expected, priority.value).set_function(expected)

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
        for gauge, labels in self._present:
            gauge.remove(*labels)
        self._present.clear()
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
        for family, labels in self._done:
            family.remove(*labels)

    def on_request(self, *, outcome: str, priority: Priority, seconds: float) -> None:
        """A Translate call or an item of a stream ended; `outcome` is the name of its status code."""
        self._requests[outcome].inc()
        self._request_seconds[priority].observe(seconds)

    def on_text(self, translated: TranslatedText, priority: Priority) -> None:
        """A text was translated."""
        self._texts.inc()
        self._source_tokens.inc(translated.num_source_tokens)
        self._target_tokens.inc(translated.num_target_tokens)
        self._splits.inc(translated.split)
        self._truncations.inc(translated.truncated)
        for kind in {warning.kind for warning in translated.warnings}:
            self._warnings[kind].inc()
        if translated.hypotheses:
            self._queue_seconds[priority].observe(translated.timings.queue)
            self._decode_seconds.observe(translated.timings.decode)

    def on_pairs(self, number: int) -> None:
        """So many texts and translations were linked."""
        self._pairs.inc(number)

    def on_event(self, event: Event) -> None:
        """An engine tells something. What waits and what runs is not counted: gauges ask for it."""
        match event:
            case GroupEncoded(seconds):
                self._encode_seconds.observe(seconds)
            case BatchStepped():
                self._step_seconds.observe(event.seconds)
                self._step_sentences.observe(event.num_sentences)
                self._step_rows.observe(event.num_rows)
                self._source_positions.inc(event.source_positions)
                self._padded_positions.inc(event.padded_positions)
            case SentenceEnded(outcome):
                self._sentences[outcome].inc()
            case EngineLost():
                self._engine_restarts.inc()

    def _present_at(self, gauge: Gauge, *labels: str) -> Gauge:
        self._present.append((gauge, (*self._labels, *labels)))
        return gauge.labels(*self._labels, *labels)

    def _counter(self, family: Counter, *labels: str) -> Counter:
        self._done.append((family, (*self._labels, *labels)))
        return family.labels(*self._labels, *labels)

    def _histogram(self, family: Histogram, *labels: str) -> Histogram:
        self._done.append((family, (*self._labels, *labels)))
        return family.labels(*self._labels, *labels)

    def _by_priority(self, family: Histogram) -> dict[Priority, Histogram]:
        return {priority: self._histogram(family, priority.value) for priority in Priority}
