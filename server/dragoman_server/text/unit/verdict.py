"""Warnings of a unit's translation."""

from collections.abc import Iterator, Sequence

from dragoman_server.engine import FinishReason
from dragoman_server.text.cleaning import Span
from dragoman_server.text.protection.numbers import Number, missing_numbers, numbers_in
from dragoman_server.text.protection.protected import SpanKind
from dragoman_server.text.source import Source
from dragoman_server.text.unit.answer import UnitAnswer
from dragoman_server.text.unit.attempt import Attempt, Stage, Task
from dragoman_server.text.warnings import (
    TranslationWarning,
    WarningKind,
    has_odd_length,
    is_untranslated,
    repeats,
)


def unit_warnings(
    source: Source,
    task: Task,
    attempt: Attempt,
    answer: UnitAnswer,
    *,
    lost_numbers: Sequence[Span],
    languages: tuple[str, str],
) -> Iterator[TranslationWarning]:
    """The warnings of a unit's best translation, from the first of its languages to the second.

    The `lost_numbers` are those that were put back. Where numbers are not kept, it looks for them in the
    answer."""
    text = source.cleaned.text[slice(*task.span)]

    def warn(kind: WarningKind, span: Span = task.span) -> TranslationWarning:
        return TranslationWarning(kind=kind, span=source.cleaned.of_caller(span))

    if attempt.stage is Stage.AROUND:
        for item in task.items:
            if not item.floats and item.kind is not SpanKind.TERM:
                yield warn(WarningKind.SPAN_PUT_BACK, item.span)
    for span in lost_numbers:
        yield warn(WarningKind.NUMBER_PUT_BACK, span)
    if not task.numbers and not lost_numbers and any(map(str.isnumeric, text)):
        found = [number for number in numbers_in(text) if not _is_in(number, task)]
        for number in missing_numbers(
            found, answer.text, source_language=languages[0], target_language=languages[1]
        ):
            start = task.span[0]
            yield warn(WarningKind.NUMBER_MISSING, (start + number.span[0], start + number.span[1]))
    if answer.finish_reason is FinishReason.LENGTH:
        yield warn(WarningKind.OUTPUT_LIMIT)
    if repeats(answer.text, text):
        yield warn(WarningKind.REPETITION)
    if not source.is_markup and has_odd_length(answer.text, text):
        yield warn(WarningKind.LENGTH)
    if is_untranslated(answer.text, text):
        yield warn(WarningKind.UNTRANSLATED)


def _is_in(number: Number, task: Task) -> bool:
    start, end = (task.span[0] + position for position in number.span)
    return any(item.span[0] < end and start < item.span[1] for item in task.items)
