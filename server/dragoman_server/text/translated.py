"""The translation of a text, as it goes out: hypotheses, links between words, warnings."""

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, TypeVar

from dragoman_server.engine.request import FinishReason, SentenceResult
from dragoman_server.text.mapped import Span, join, moved


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """A link between a word of the source and a word of the target."""

    source: Span
    target: Span
    weight: float
    """Share of the target word's attention on the source words that falls on this one, from 0 to 1."""


class WarningKind(enum.Enum):
    """The kinds of warnings."""

    UNKNOWN_TOKENS = "unknown_tokens"
    """The model can't read something; it is in the translation as it was, unless protection is off."""
    SPAN_PUT_BACK = "span_put_back"
    """A protected span came out only by translating the text around it by itself: word order may be wrong."""
    SPAN_MISSING = "span_missing"
    """A protected span is not there: it was truncated."""
    NUMBER_PUT_BACK = "number_put_back"
    """The model changed a number; it was put back."""
    NUMBER_MISSING = "number_missing"
    """A number of the source is not in the translation."""
    REPETITION = "repetition"
    """The translation says something again that its source says once."""
    OUTPUT_LIMIT = "output_limit"
    """The translation was cut at its limit of tokens."""
    LENGTH = "length"
    """The translation is far longer than its source."""
    UNTRANSLATED = "untranslated"
    """The source, or some words of it in a row, was left as it is."""
    FOREIGN_SCRIPT = "foreign_script"
    """The text is not in the source language's script."""
    OMISSION = "omission"
    """The translation is so short that it is likely to lack a part."""
    BRACKETS = "brackets"
    """Brackets or quotes of the source are not in pairs in the translation, or it has others."""
    NAME_MISSING = "name_missing"
    """A name of the source is not in the translation."""
    NUMBER_AMBIGUOUS = "number_ambiguous"
    """A number may be a thousand times as much, as English "2.500". It is read as the language has it."""
    FORBIDDEN_TERM = "forbidden_term"
    """The translation has a word that the caller forbade."""


@dataclass(frozen=True, kw_only=True)
class TranslationWarning:
    """One warning."""

    kind: WarningKind
    span: Span
    """The range of the caller's text, in code points."""


@dataclass(frozen=True, kw_only=True)
class TranslatedHypothesis:
    """One translation of a text or of a part of one; its numbers are sums over the sentences."""

    text: str
    score: float = 0.0
    log_probability: float = 0.0
    finish_reason: FinishReason = FinishReason.STOP
    """LENGTH where any sentence reached its limit."""
    num_tokens: int = 0
    """Target tokens, ends included."""
    alignments: tuple[Alignment, ...] = ()
    """Alignments in offsets of the caller's whole text and of this text."""


def whole_of(
    parts: Sequence[TranslatedHypothesis], text: str, alignments: Iterable[Alignment]
) -> TranslatedHypothesis:
    """The hypothesis that the parts make up."""
    is_limited = any(part.finish_reason is FinishReason.LENGTH for part in parts)
    return TranslatedHypothesis(
        text=text,
        score=sum(part.score for part in parts),
        log_probability=sum(part.log_probability for part in parts),
        finish_reason=FinishReason.LENGTH if is_limited else FinishReason.STOP,
        num_tokens=sum(part.num_tokens for part in parts),
        alignments=tuple(alignments),
    )


def joined(
    gaps: Sequence[str], parts: Sequence[TranslatedHypothesis], *, filler: str = ""
) -> TranslatedHypothesis:
    """The parts with gaps around them, and the filler where two touch."""
    text, offsets = join(gaps, [part.text for part in parts], filler=filler)
    return whole_of(
        parts,
        text,
        (
            replace(link, target=moved(link.target, offset))
            for part, offset in zip(parts, offsets, strict=True)
            for link in part.alignments
        ),
    )


class _HasText(Protocol):
    @property
    def text(self) -> str: ...


TextT = TypeVar("TextT", bound=_HasText)


def first_of_each_text(ranked: Iterable[TextT]) -> tuple[TextT, ...]:
    """The items in their order, without those whose text came before."""
    first: dict[str, TextT] = {}
    for hypothesis in ranked:
        first.setdefault(hypothesis.text, hypothesis)
    return tuple(first.values())


@dataclass(frozen=True, kw_only=True)
class SentenceConfidence:
    """How likely the translation of a sentence is good."""

    source: Span
    """The range of the caller's text."""
    target: Span
    """The range of the best hypothesis' text."""
    confidence: float
    """The probability that its chrF against a reference is 50 or more."""


class Timings(NamedTuple):
    """Where the time of the sentence that took longest went, in seconds."""

    queue: float = 0.0
    """Waiting for a place in a batch, and before that for room in the queue."""
    encode: float = 0.0
    """Encoding."""
    decode: float = 0.0
    """Beam search."""


NO_TIME = Timings()


def slowest(results: Iterable[SentenceResult]) -> Timings:
    """The timings of the sentence that took longest."""
    timings = (Timings(each.queue_seconds, each.encode_seconds, each.decode_seconds) for each in results)
    return max(timings, key=sum, default=NO_TIME)


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
    confidences: tuple[SentenceConfidence, ...] = field(default=())
    """Those of the sentences; none where the model is not calibrated, or translated nothing."""

    @property
    def confidence(self) -> float | None:
        """The share of the text that is likely to be good: the mean of its sentences' by their length.

        A product would fall with the length of any text, and one short heading decide a minimum.
        """
        lengths = [each.source[1] - each.source[0] for each in self.confidences]
        shares = zip(lengths, self.confidences, strict=True)
        return sum(length * each.confidence for length, each in shares) / sum(lengths) if lengths else None

    def at(self, rank: int, source: str) -> TranslatedHypothesis:
        """A hypothesis, the last one where there are fewer; the source where nothing was translated."""
        if self.hypotheses:
            return self.hypotheses[min(rank, len(self.hypotheses) - 1)]
        return TranslatedHypothesis(text=self.text or source)


def whole_text(
    parts: Sequence[TranslatedText], whole_at: Callable[[int], TranslatedHypothesis]
) -> TranslatedText:
    """The text that the parts make up, without warnings and confidences.

    `whole_at` makes a hypothesis of it of those of a rank.
    """
    num_hypotheses = max(len(part.hypotheses) for part in parts)
    hypotheses = first_of_each_text(map(whole_at, range(max(num_hypotheses, 1))))
    return TranslatedText(
        text=hypotheses[0].text,
        hypotheses=hypotheses if num_hypotheses else (),
        split=any(part.split for part in parts),
        truncated=any(part.truncated for part in parts),
        num_units=sum(part.num_units for part in parts),
        num_source_tokens=sum(part.num_source_tokens for part in parts),
        num_target_tokens=sum(part.num_target_tokens for part in parts),
        timings=max((part.timings for part in parts), key=sum),
    )
