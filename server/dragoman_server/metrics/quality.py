"""Prometheus metrics of what translations are like, by which a change of texts or of quality shows.

Nobody has a reference at that moment. How sure the model was and how long its answers are tell of a change.
"""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Histogram

from dragoman_server.metrics.series import MODEL_LABELS, Series
from dragoman_server.text.translated import TranslatedText
from dragoman_server.text.warnings import WarningKind

SURPRISAL_BUCKETS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.3, 1.7, 2.2, 3.0,
                     4.0, 6.0)  # fmt: skip
"""Nats a token: 0 is certain, 1 a chance of 37% for each."""
RATIO_BUCKETS = (0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.4, 1.6, 2.0, 3.0, 5.0)
"""Target tokens to a source token."""


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
        self.length_ratio = histogram(
            "dragoman_length_ratio", "Target tokens of a text to its source tokens.", buckets=RATIO_BUCKETS
        )


class QualityMetrics:
    """The quality metrics of one model."""

    def __init__(self, families: QualityFamilies, series: Series) -> None:
        self._warnings = {kind: series.counter(families.warnings, kind.value) for kind in WarningKind}
        self._surprisal = series.histogram(families.surprisal)
        self._length_ratio = series.histogram(families.length_ratio)

    def on_text(self, translated: TranslatedText) -> None:
        """A text was translated."""
        for kind in {warning.kind for warning in translated.warnings}:
            self._warnings[kind].inc()
        # Where there was nothing to translate there is nothing to be sure of.
        if translated.hypotheses and translated.num_source_tokens and translated.num_target_tokens:
            log_probability = translated.hypotheses[0].log_probability
            self._surprisal.observe(max(0.0, -log_probability / translated.num_target_tokens))
            self._length_ratio.observe(translated.num_target_tokens / translated.num_source_tokens)
