"""Prometheus metrics of what translations are like, by which a change of texts or of quality shows.

Nobody has a reference at that moment. How sure the model was and how long its answers are tell of a change.
"""

from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Histogram

from dragoman_server.metrics.series import MODEL_LABELS, Series

SURPRISAL_BUCKETS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.3, 1.7, 2.2, 3.0,
                     4.0, 6.0)  # fmt: skip
"""Nats a token: 0 is certain, 1 a chance of 37% for each."""
RATIO_BUCKETS = (0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.4, 1.6, 2.0, 3.0, 5.0)
"""Target tokens to a source token."""
CONFIDENCE_BUCKETS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
"""Shares of a text that are likely to be good."""
WARNING_KINDS = (
    "unknown_tokens",
    "span_put_back",
    "span_missing",
    "number_put_back",
    "number_missing",
    "repetition",
    "output_limit",
    "length",
    "untranslated",
    "foreign_script",
    "omission",
    "brackets",
    "name_missing",
    "forbidden_term",
    "number_ambiguous",
)
"""The kinds of warnings, of which each model has a series from its loading on."""


@dataclass(frozen=True, kw_only=True)
class TextFigures:
    """The figures of a translated text that metrics are made of."""

    num_source_tokens: int
    num_target_tokens: int
    split: bool
    truncated: bool
    warnings: frozenset[str]
    """The kinds of its warnings, of `WARNING_KINDS`."""
    log_probability: float | None
    """That of the best hypothesis; None where there was nothing to translate."""
    confidence: float | None
    """Where the model is calibrated."""
    seconds: tuple[float, float, float]
    """Seconds that its slowest sentence was in the queue, encoded and decoded."""


class QualityFamilies:
    """The families, labelled by model."""

    def __init__(self, registry: CollectorRegistry) -> None:
        histogram = partial(Histogram, labelnames=MODEL_LABELS, registry=registry)
        self.warnings = Counter(
            "dragoman_warnings_total",
            "Texts whose translation came with a warning, by kind.",
            (*MODEL_LABELS, "kind"),
            registry=registry,
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


class QualityMetrics:
    """The quality metrics of one model."""

    def __init__(self, families: QualityFamilies, series: Series) -> None:
        self._warnings = {kind: series.counter(families.warnings, kind) for kind in WARNING_KINDS}
        self._surprisal = series.histogram(families.surprisal)
        self._confidence = series.histogram(families.confidence)
        self._length_ratio = series.histogram(families.length_ratio)

    def on_text(self, text: TextFigures) -> None:
        """A text was translated."""
        for kind in text.warnings:
            self._warnings[kind].inc()
        if text.confidence is not None:
            self._confidence.observe(text.confidence)
        # Where there was nothing to translate there is nothing to be sure of.
        if text.log_probability is not None and text.num_source_tokens and text.num_target_tokens:
            self._surprisal.observe(max(0.0, -text.log_probability / text.num_target_tokens))
            self._length_ratio.observe(text.num_target_tokens / text.num_source_tokens)
