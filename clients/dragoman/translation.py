"""Translations and their parts. Plain values: nothing here knows gRPC."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from dragoman.errors import DragomanError
from dragoman.model import ModelReference

Key = TypeVar("Key")


class FinishReason(StrEnum):
    """Why a hypothesis ended."""

    STOP = "stop"
    """The model ended the sentence."""
    LENGTH = "length"
    """The limit of output tokens was reached."""
    UNKNOWN = "unknown"
    """The server did not report it."""


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """A link between a word of the source and a word of its translation, as half-open code point ranges.

    `text[source_start:source_end]` is the source word, and `hypothesis.text[target_start:target_end]`, or
    that of the translation that was given, the target word.
    """

    source_start: int
    """First code point of the source word."""
    source_end: int
    """One past its last."""
    target_start: int
    """First code point of the target word."""
    target_end: int
    """One past its last."""
    weight: float
    """Share of the target word's attention that falls on the source word, from 0 to 1; of an aligner, how far
    both of its directions believe in the link."""


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """One of the translations that the search found."""

    text: str
    """The translation, with what stands between the source's sentences as it is."""
    score: float
    """Length-normalised log-probability, the value hypotheses are ranked by."""
    log_probability: float
    """Natural log of the probability that the model gives to it: among the sentence's candidates where it is
    decoded with a shortlist, which is more than among all tokens."""
    finish_reason: FinishReason
    """Why it ended."""
    alignments: tuple[Alignment, ...]
    """Links between words, where the call asked for them."""


@dataclass(frozen=True, kw_only=True)
class Timings:
    """Where a text's time went on the server; of its sentences, the one that took longest counts."""

    queue_seconds: float
    """Waiting for a place in a batch, and before that for room in the queue."""
    encode_seconds: float
    decode_seconds: float
    """Beam search."""


class WarningKind(StrEnum):
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
    UNKNOWN = "unknown"
    """The server reported something that this client does not know."""


@dataclass(frozen=True, kw_only=True)
class TranslationWarning:
    """A warning about a part of the text, as a half-open range of code points."""

    kind: WarningKind
    start: int
    """First code point of the part."""
    end: int
    """One past its last."""


@dataclass(frozen=True, kw_only=True)
class SentenceConfidence:
    """How likely the translation of a sentence is good, with ranges of code points as an alignment's."""

    source_start: int
    """First code point of the sentence in the text."""
    source_end: int
    """One past its last."""
    target_start: int
    """First code point of its translation in the best hypothesis."""
    target_end: int
    """One past its last."""
    confidence: float
    """The probability that the chrF of the translation against a reference is 50 or more, from 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class Translation:
    """The translation of one text."""

    text: str
    """The best hypothesis' text. Where there was nothing to translate the source's own, and of white space
    alone ""."""
    hypotheses: tuple[Hypothesis, ...]
    """The hypotheses, best first. Empty for a text with nothing to translate, as of one without a letter."""
    model: ModelReference
    """The model that translated; of several the last."""
    truncated: bool
    """Whether the end of some sentence was dropped because it was too long."""
    split: bool
    """Whether some sentence was cut into parts because it was too long."""
    sentences: int
    """Number of units the text was cut into."""
    source_tokens: int
    """Source tokens of all sentences, each with its end-of-sentence token."""
    target_tokens: int
    """Target tokens of the best hypothesis, with the end of each sentence that the model ended."""
    timings: Timings
    """Where the time went."""
    warnings: tuple[TranslationWarning, ...] = ()
    """Warnings of the best hypothesis, in the order of the text."""
    path: tuple[ModelReference, ...] = ()
    """The models one after the other, where it went through a language between; empty for one model."""
    confidence: float | None = None
    """How much of the text is likely to be translated well, from 0 to 1: the mean of its sentences' by their
    length. None where nobody has calibrated the model, or nothing was translated."""
    sentence_confidences: tuple[SentenceConfidence, ...] = ()
    """Those of the sentences, in the order of the text; none where there is no `confidence`."""

    @property
    def limited(self) -> bool:
        """Whether the best hypothesis ended at the limit of output tokens."""
        return bool(self.hypotheses) and self.hypotheses[0].finish_reason is FinishReason.LENGTH


@dataclass(frozen=True, kw_only=True)
class AlignedTexts:
    """The links between the words of a text and of a translation that somebody else made."""

    alignments: tuple[Alignment, ...]
    """The links by target word and falling weight, in offsets of the caller's own texts."""
    model: ModelReference | None
    """The model that linked them; None where an aligner did."""
    aligner: str | None = None
    """The name of the server's saved aligner that linked them; None where a model did."""
    source_tokens: int
    """The source tokens, with an end for each part that was linked at once; of an aligner, words."""
    target_tokens: int
    """The target tokens, without ends; of an aligner, words."""
    timings: Timings
    """Where the time went."""


@dataclass(frozen=True, kw_only=True)
class LanguageCandidate:
    """A language that a text may be in."""

    language: str
    """The language as a BCP 47 code."""
    confidence: float
    """Probability from 0 to 1; all candidates of a text together have 1."""
    served: bool
    """Whether some model of the server has it."""


@dataclass(frozen=True, kw_only=True)
class DetectedLanguage:
    """The language of a text."""

    language: str | None
    """The language, if some model translates from or to it; None where the text clearly is in no such one."""
    confidence: float
    """Probability from 0 to 1; 0 for None."""
    candidates: tuple[LanguageCandidate, ...]
    """The candidates, most likely first; for None with the most likely language that is not served."""


@dataclass(frozen=True, kw_only=True)
class StreamResult(Generic[Key]):
    """How one text of a stream ended: with a translation or with an error, never both."""

    id: Key
    """The caller's id of the text."""
    translation: Translation | None
    error: DragomanError | None
    """Why there is none."""
