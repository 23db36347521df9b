"""Warnings of a unit's translation."""

from collections.abc import Iterator, Sequence

from dragoman_server.engine.request import FinishReason
from dragoman_server.text.find.numbers import missing_numbers, numbers_in
from dragoman_server.text.mapped import Span, moved
from dragoman_server.text.marks import How, Kind
from dragoman_server.text.passage import Passage, Stage, Unit
from dragoman_server.text.translated import TranslationWarning, WarningKind

MAX_LENGTH_RATIO = 3.0
"""A translation with more than so many times the characters of its source, or the other way round, is as good
as never one; `LENGTH_SLACK` more are always free."""
LENGTH_SLACK = 20
MIN_REPETITIONS = 3
"""So many times in a row the same words, where the source has none, are a search that went round in
circles."""
_MAX_REPEATED_WORDS = 4


def unit_warnings(passage: Passage, unit: Unit) -> Iterator[TranslationWarning]:
    """The warnings of a unit's best translation."""
    text, answer = passage.source.text[slice(*unit.span)], unit.answers[0]
    source, target = passage.languages

    def warn(kind: WarningKind, span: Span = unit.span) -> TranslationWarning:
        return TranslationWarning(kind=kind, span=passage.source.back(span))

    if unit.attempt.stage is Stage.APART:
        for mark in unit.marks:
            if mark.how is How.MASK:
                yield warn(WarningKind.SPAN_PUT_BACK, mark.span)
    for span in unit.lost_numbers:
        yield warn(WarningKind.NUMBER_PUT_BACK, span)
    has_numbers = any(mark.kind is Kind.NUMBER for mark in unit.marks)
    if not has_numbers and any(map(str.isnumeric, text)):
        # They are not kept, and may be lost.
        found = [number for number in numbers_in(text, source) if not _is_marked(unit, number.span)]
        for number in missing_numbers(found, answer.text, source_language=source, target_language=target):
            yield warn(WarningKind.NUMBER_MISSING, moved(number.span, unit.span[0]))
    if answer.finish_reason is FinishReason.LENGTH:
        yield warn(WarningKind.OUTPUT_LIMIT)
    if _has_repetition(answer.text.casefold().split()) and not _has_repetition(text.casefold().split()):
        yield warn(WarningKind.REPETITION)
    shorter, longer = sorted((len(answer.text), len(text)))
    if not passage.is_markup and longer > shorter * MAX_LENGTH_RATIO + LENGTH_SLACK:
        yield warn(WarningKind.LENGTH)
    # Single words may be the same in two languages.
    if answer.text.strip() == text.strip() and len(text.split()) > 2:
        yield warn(WarningKind.UNTRANSLATED)


def _is_marked(unit: Unit, span: Span) -> bool:
    start, end = moved(span, unit.span[0])
    return any(mark.span[0] < end and start < mark.span[1] for mark in unit.marks)


def _has_repetition(words: Sequence[str]) -> bool:
    """Whether one to four words come several times in a row."""
    if len(set(words)) > len(words) - MIN_REPETITIONS + 1:
        return False
    return any(_repeats(words, size) for size in range(1, _MAX_REPEATED_WORDS + 1))


def _repeats(words: Sequence[str], size: int) -> bool:
    """Whether there is a stretch long enough in which each word is the one so many before it."""
    length = 0
    for word, earlier in zip(words[size:], words, strict=False):
        length = length + 1 if word == earlier else 0
        if length >= (MIN_REPETITIONS - 1) * size:
            return True
    return False
