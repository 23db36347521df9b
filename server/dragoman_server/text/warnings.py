"""Warnings of a translation: a closed set of kinds, each with the range of the source that it is about."""

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman_server.text.cleaning import Span

MAX_LENGTH_RATIO = 3.0
"""A translation with more than so many times the characters of its source, or the other way round, is as good
as never one; `LENGTH_SLACK` more are always free."""
LENGTH_SLACK = 20
MIN_REPETITIONS = 3
"""So many times in a row the same words, where the source has none, are a search that went round in
circles."""
_MAX_REPEATED_WORDS = 4


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
    """The translation says the same over and over."""
    OUTPUT_LIMIT = "output_limit"
    """The translation was cut at its limit of tokens."""
    LENGTH = "length"
    """The translation is far longer or shorter than its source."""
    UNTRANSLATED = "untranslated"
    """The source was left as it is."""
    FOREIGN_SCRIPT = "foreign_script"
    """The text is not in the source language's script."""


@dataclass(frozen=True, kw_only=True)
class TranslationWarning:
    """One warning."""

    kind: WarningKind
    span: Span
    """The range of the caller's text, in code points."""


def repeats(answer: str, source: str) -> bool:
    """Whether an answer repeats words in a row, and its source nothing."""
    return _has_repetition(answer.casefold().split()) and not _has_repetition(source.casefold().split())


def has_odd_length(answer: str, source: str) -> bool:
    """Whether one is far longer than the other."""
    longer, shorter = max(len(answer), len(source)), min(len(answer), len(source))
    return longer > shorter * MAX_LENGTH_RATIO + LENGTH_SLACK


def is_untranslated(answer: str, source: str) -> bool:
    """Whether the answer is the source; single words may be the same in two languages."""
    return answer.strip() == source.strip() and len(source.split()) > 2


def _has_repetition(words: Sequence[str]) -> bool:
    if len(set(words)) > len(words) - MIN_REPETITIONS + 1:
        return False
    return any(length >= (MIN_REPETITIONS - 1) * size for size, length in _runs(words))


def _runs(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """For each number of words, the lengths of stretches in which each word is the one so many before it."""
    for size in range(1, _MAX_REPEATED_WORDS + 1):
        length = 0
        for word, earlier in zip(words[size:], words, strict=False):
            length = length + 1 if word == earlier else 0
            if length >= (MIN_REPETITIONS - 1) * size:
                yield size, length
                break
