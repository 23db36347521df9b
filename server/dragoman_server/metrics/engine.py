"""Prometheus metrics of engines: what they step, how busy they are, and who waits for them."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from dragoman_server.engine.events import BatchStepped, EngineLost, Outcome, SentenceEnded
from dragoman_server.engine.pool.pool import EnginePool
from dragoman_server.engine.request import Priority
from dragoman_server.metrics.series import MODEL_LABELS, Series

STEP_BUCKETS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0)
"""Seconds of one decoder step."""
SIZE_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""Sentences or rows of one decoder step."""
AGES = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Seconds: how many wait for longer is told."""

_WAITING = (*MODEL_LABELS, "priority")


class EngineFamilies:
    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        total = partial(Counter, labelnames=MODEL_LABELS, registry=registry)
        step = partial(Histogram, labelnames=MODEL_LABELS, buckets=STEP_BUCKETS, registry=registry)
        size = partial(Histogram, labelnames=MODEL_LABELS, buckets=SIZE_BUCKETS, registry=registry)

        outcome = (*MODEL_LABELS, "outcome")
        self.sentences = counter("dragoman_sentences_total", "Sentences that left the engine.", outcome)
        self.step_seconds = step("dragoman_step_seconds", "Advancing a batch by one token.")
        self.step_sentences = size("dragoman_step_sentences", "Sentences in a decoder step.")
        self.step_rows = size("dragoman_step_rows", "Rows, sentences times beam, in a decoder step.")
        self.source_positions = total(
            "dragoman_step_source_positions_total", "Source positions in decoder steps, without padding."
        )
        self.padded_positions = total(
            "dragoman_step_padded_positions_total", "Source positions in decoder steps, padding included."
        )
        self.busy_seconds = counter(
            "dragoman_engine_busy_seconds_total",
            "Seconds that an engine worked rather than waited for work, by its number.",
            (*MODEL_LABELS, "engine"),
        )
        self.load_seconds = counter(
            "dragoman_engine_load_seconds_total",
            "Of the busy seconds those that rows of a priority added: what grows with load.",
            _WAITING,
        )
        self.row_seconds = total("dragoman_engine_row_seconds_total", "Rows in use, times how long.")
        self.rows = gauge("dragoman_engine_rows", "Rows that all engines have together.", MODEL_LABELS)
        self.waiting = gauge(
            "dragoman_queue_sentences", "Sentences that wait for a place in a batch.", _WAITING
        )
        self.waiting_for = gauge(
            "dragoman_queue_older_sentences",
            "Of the sentences that wait, those that have for longer than so many seconds.",
            (*_WAITING, "seconds"),
        )
        self.queue_limit = gauge(
            "dragoman_queue_limit_sentences", "Most that may wait beside the others that do.", _WAITING
        )
        self.queue_expected = gauge(
            "dragoman_queue_expected_seconds", "What those that wait are expected to take.", _WAITING
        )
        self.running = gauge("dragoman_running_sentences", "Sentences that are being decoded.", MODEL_LABELS)
        self.engines = gauge("dragoman_engines", "Engines that decode.", MODEL_LABELS)
        self.restarts = total(
            "dragoman_engine_restarts_total", "Engines that ended or hung, and were started anew."
        )


class EngineMetrics:
    """The metrics of one model's engines; takes their events."""

    def __init__(self, families: EngineFamilies, series: Series) -> None:
        self._families = families
        self._series = series
        counter, histogram = series.counter, series.histogram
        self._sentences = {outcome: counter(families.sentences, outcome.value) for outcome in Outcome}
        self._step_seconds = histogram(families.step_seconds)
        self._step_sentences = histogram(families.step_sentences)
        self._step_rows = histogram(families.step_rows)
        self._source_positions = counter(families.source_positions)
        self._padded_positions = counter(families.padded_positions)
        self._busy_seconds: list[Counter] = []
        load = {priority: counter(families.load_seconds, priority.value) for priority in Priority}
        self._interactive_load, self._bulk_load = load[Priority.INTERACTIVE], load[Priority.BULK]
        self._row_seconds = counter(families.row_seconds)
        self._restarts = counter(families.restarts)

    def on_start(self, num_engines: int) -> None:
        """So many engines may tell something from now on."""
        for number in range(len(self._busy_seconds), num_engines):
            self._busy_seconds.append(self._series.counter(self._families.busy_seconds, str(number)))

    def show(self, engine: EnginePool) -> None:
        """The model translates. Gauges ask the engine when read."""
        families, gauge = self._families, self._series.gauge
        gauge(families.rows).set(engine.max_rows)
        gauge(families.running).set_function(lambda: engine.num_running)
        gauge(families.engines).set_function(lambda: engine.num_alive)
        for priority in Priority:
            label = priority.value
            gauge(families.waiting, label).set_function(partial(engine.num_waiting, priority))
            gauge(families.queue_limit, label).set_function(partial(engine.max_waiting, priority))
            gauge(families.queue_expected, label).set_function(partial(engine.expected_seconds, priority))
            for seconds in AGES:
                older = partial(engine.num_waiting_for, priority, seconds)
                gauge(families.waiting_for, label, f"{seconds:g}").set_function(older)

    def on_event(self, event: BatchStepped | SentenceEnded | EngineLost) -> None:
        """An engine tells something. What waits and what runs is not counted: gauges ask for it."""
        match event:
            case BatchStepped():
                self._on_step(event)
            case SentenceEnded(outcome):
                self._sentences[outcome].inc()
            case EngineLost():
                self._restarts.inc()

    def _on_step(self, step: BatchStepped) -> None:
        self._step_seconds.observe(step.seconds)
        self._step_sentences.observe(step.num_sentences)
        self._step_rows.observe(step.num_rows)
        self._source_positions.inc(step.source_positions)
        self._padded_positions.inc(step.padded_positions)
        self._busy_seconds[step.engine].inc(step.busy_seconds)
        self._row_seconds.inc(step.rows_in_use * step.busy_seconds)
        self._interactive_load.inc((step.num_rows - step.num_bulk_rows) * step.row_seconds)
        self._bulk_load.inc(step.num_bulk_rows * step.row_seconds)
