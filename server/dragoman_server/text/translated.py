"""The translation of a text, as it goes out."""

from dataclasses import dataclass, field

from dragoman_server.engine import FinishReason
from dragoman_server.text.alignment import Alignment
from dragoman_server.text.warnings import TranslationWarning


@dataclass(frozen=True, kw_only=True)
class TranslatedHypothesis:
    """One translation of a whole text; its numbers are sums over the sentences."""

    text: str
    score: float
    log_probability: float
    finish_reason: FinishReason
    """LENGTH where any sentence reached its limit."""
    alignments: tuple[Alignment, ...]
    """Alignments in offsets of the whole text and of this hypothesis' whole text."""


@dataclass(frozen=True, kw_only=True)
class Timings:
    """Where the time of the sentence that took longest went, in seconds."""

    queue: float
    """Waiting for a place in a batch, and before that for room in the queue."""
    encode: float
    """Encoding."""
    decode: float
    """Beam search."""


@dataclass(frozen=True, kw_only=True)
class TranslatedText:
    """The translation of one text."""

    text: str
    """The best hypothesis' text. Where there was nothing to translate the source's own, and of white space
    alone ""."""
    hypotheses: tuple[TranslatedHypothesis, ...]
    """Best first; empty where there was nothing to translate."""
    split: bool
    """Whether some sentence was cut because it was too long."""
    truncated: bool
    """Whether some sentence lost its end because it was too long."""
    num_units: int
    """Units that the text was cut into."""
    num_source_tokens: int
    """Source tokens of all sentences, ends included."""
    num_target_tokens: int
    """Target tokens of the best hypothesis, ends included."""
    timings: Timings
    """Where its time went."""
    warnings: tuple[TranslationWarning, ...] = field(default=())
    """Warnings of the best hypothesis."""
