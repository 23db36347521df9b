"""Prometheus metrics of models, and of aligners among them, in a registry that is handed in.

A model's series are there from its loading to its end: a server that reloads for years shows what it has.
Labels come from closed sets: never a caller's text, key or address. What translations are like shows a change
of texts or of quality, for which nobody has a reference at that moment.
"""

from collections import Counter as Count
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from dragoman_bundle import Manifest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from dragoman_server.engine.events import BatchStepped, EngineLost, Event, SentenceEnded
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.engine.request import Priority
from dragoman_server.metrics.engine import EngineFamilies, EngineMetrics
from dragoman_server.metrics.series import LATENCY_BUCKETS, MODEL_LABELS, Series

if TYPE_CHECKING:
    from dragoman_server.text.translated import TranslatedText

# How a request whose model is known can end, as status codes.
OUTCOMES = ("OK", "CANCELLED", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "UNAVAILABLE",
             "INTERNAL")  # fmt: skip
TOTALS = {
    "texts": ("dragoman_texts_total", "Texts translated."),
    "pairs": ("dragoman_aligned_pairs_total", "Texts and translations whose words were linked."),
    "source_tokens": ("dragoman_source_tokens_total", "Source tokens, ends included."),
    "target_tokens": ("dragoman_target_tokens_total", "Target tokens, ends included."),
    "splits": ("dragoman_splits_total", "Texts with a sentence cut for its length."),
    "truncations": ("dragoman_truncations_total", "Texts with a sentence truncated."),
    "load_failures": ("dragoman_model_load_failures_total", "Times a model could not be loaded."),
}
SECONDS = {
    "request": "From a request's arrival to its end.",
    "queue": "Wait for a batch, of texts' slowest sentences.",
    "encode": "Encoding, of texts' slowest sentences.",
    "decode": "Search, of texts' slowest sentences.",
    "text": "Cutting a request's texts and joining their translations, waits for a thread among it.",
}
"""Latencies of each model by priority: jobs wait for each other, and would hide how long people do."""
SURPRISAL_BUCKETS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.3, 1.7, 2.2, 3.0,
                     4.0, 6.0)  # fmt: skip
"""Nats a token: 0 is certain, 1 a chance of 37% for each."""
RATIO_BUCKETS = (0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.4, 1.6, 2.0, 3.0, 5.0)
"""Target tokens to a source token."""
CONFIDENCE_BUCKETS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
"""Shares of a text that are likely to be good."""
WARNING_KINDS = (
    *("unknown_tokens", "span_put_back", "span_missing", "number_put_back", "number_missing", "repetition"),
    *("output_limit", "length", "untranslated", "foreign_script", "omission", "brackets", "name_missing"),
    *("forbidden_term", "number_ambiguous"),
)
"""The kinds of warnings, of which each model has a series from its loading on."""


class Metrics:
    """The families, each but the server's own labelled by model."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.num_models: Count[tuple[str, ...]] = Count()
        """Number of models that share series, by labels: the old one and the new, where one came again."""
        counter, gauge = partial(Counter, registry=registry), partial(Gauge, registry=registry)
        latency = partial(Histogram, buckets=LATENCY_BUCKETS, registry=registry)
        histogram = partial(Histogram, labelnames=MODEL_LABELS, registry=registry)
        waiting = (*MODEL_LABELS, "priority")

        outcome = (*MODEL_LABELS, "outcome")
        self.requests = counter("dragoman_requests_total", "Calls and stream items ended.", outcome)
        self.totals = {name: counter(*words, MODEL_LABELS) for name, words in TOTALS.items()}
        self.seconds = {
            name: latency(f"dragoman_{name}_seconds", words, waiting) for name, words in SECONDS.items()
        }
        self.warnings = counter(
            "dragoman_warnings_total",
            "Texts whose translation came with a warning, by kind.",
            (*MODEL_LABELS, "kind"),
        )
        self.surprisal = histogram(
            "dragoman_token_surprisal_nats",
            "How unsure the model was of a text: -ln p of a token of its translation, on average.",
            buckets=SURPRISAL_BUCKETS,
        )
        self.confidence = histogram(
            "dragoman_confidence",
            "How much of a text is likely to be translated well, where the model is calibrated.",
            buckets=CONFIDENCE_BUCKETS,
        )
        self.length_ratio = histogram(
            "dragoman_length_ratio", "Target tokens of a text to its source tokens.", buckets=RATIO_BUCKETS
        )
        self.engine = EngineFamilies(registry)
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
        languages = (manifest.source_language, manifest.target_language)
        self._labels = (manifest.name, manifest.version, *languages)
        self._architecture = manifest.architecture.family
        self._series = Series(self._labels)
        # One that came again under the same name has the gauges then.
        self._is_retired = False

    def on_serve(self) -> None:
        """The model takes requests from now on, and may be loaded later."""
        metrics = self._metrics
        metrics.num_models[self._labels] += 1
        counter, histogram = self._series.counter, self._series.histogram
        self._requests = {outcome: counter(metrics.requests, outcome) for outcome in OUTCOMES}
        self._totals = {name: counter(family) for name, family in metrics.totals.items()}
        self._seconds = {name: self._series.by_priority(family) for name, family in metrics.seconds.items()}
        self._warnings = {kind: counter(metrics.warnings, kind) for kind in WARNING_KINDS}
        self._surprisal, self._confidence = histogram(metrics.surprisal), histogram(metrics.confidence)
        self._length_ratio = histogram(metrics.length_ratio)
        self._load_seconds = histogram(metrics.load_seconds)
        self._engine = EngineMetrics(metrics.engine, self._series)
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
        self._totals["load_failures"].inc()

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
        self._seconds["request"][priority].observe(seconds)

    def on_text(self, text: "TranslatedText", priority: Priority) -> None:
        totals = self._totals
        totals["texts"].inc()
        totals["source_tokens"].inc(text.num_source_tokens)
        totals["target_tokens"].inc(text.num_target_tokens)
        totals["splits"].inc(text.split)
        totals["truncations"].inc(text.truncated)
        for kind in {warning.kind.value for warning in text.warnings}:
            self._warnings[kind].inc()
        if (confidence := text.confidence) is not None:
            self._confidence.observe(confidence)
        if not text.hypotheses:
            # Where there was nothing to translate there is nothing to be sure of.
            return
        if text.num_source_tokens and text.num_target_tokens:
            surprisal = -text.hypotheses[0].log_probability / text.num_target_tokens
            self._surprisal.observe(max(0.0, surprisal))
            self._length_ratio.observe(text.num_target_tokens / text.num_source_tokens)
        for stage, seconds in zip(("queue", "encode", "decode"), text.timings, strict=True):
            self._seconds[stage][priority].observe(seconds)

    def on_text_work(self, seconds: float, priority: Priority) -> None:
        """A request's texts were cut, and their translations joined, in so long."""
        self._seconds["text"][priority].observe(seconds)

    def on_pairs(self, number: int) -> None:
        self._totals["pairs"].inc(number)

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
        self._request_seconds = self._series.by_priority(metrics.seconds["request"])
        self._pairs = self._series.counter(metrics.totals["pairs"])

    def on_request(self, *, outcome: str, priority: Priority, seconds: float) -> None:
        """An AlignTexts call ended; `outcome` is the name of its status code."""
        self._requests[outcome].inc()
        self._request_seconds[priority].observe(seconds)

    def on_pairs(self, number: int) -> None:
        self._pairs.inc(number)

    def on_end(self) -> None:
        self._series.end()
