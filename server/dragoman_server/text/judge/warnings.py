"""What a reader should know of a unit's translation: its confidence, and warnings."""

import html
import re
from collections.abc import Iterator

from dragoman_bundle.decoding import evidence_of

from dragoman_server.engine.request import FinishReason
from dragoman_server.text.find.numbers import is_ambiguous, missing_numbers, numbers_in
from dragoman_server.text.judge.doubts import doubts
from dragoman_server.text.mapped import Span, moved
from dragoman_server.text.marks import How, Kind, outside
from dragoman_server.text.passage import Passage, Stage, Unit
from dragoman_server.text.translated import TranslationWarning, WarningKind

_TAG = re.compile(r"<[^>]*>")


def unit_confidence(passage: Passage, unit: Unit) -> float | None:
    """The probability that a unit's best translation is good; None where nobody has calibrated the model, or
    it translated nothing of the unit."""
    confidence, answer = passage.bundle.manifest.confidence, unit.answers[0]
    if confidence is None or not answer.num_tokens:
        return None
    evidence = evidence_of(
        passage.source.text[slice(*unit.span)],
        _text_of(passage, unit),
        log_probability=answer.log_probability,
        num_tokens=answer.num_tokens,
        length_ratio=confidence.length_ratio,
    )
    return confidence.probability(evidence)


def unit_warnings(passage: Passage, unit: Unit) -> Iterator[TranslationWarning]:
    """The warnings of a unit's best translation."""
    text, answer = passage.source.text[slice(*unit.span)], unit.answers[0]
    source, target = passage.languages

    def warn(kind: WarningKind, span: Span = unit.span) -> TranslationWarning:
        return TranslationWarning(kind=kind, span=passage.source.back(span))

    if unit.attempt.stage is Stage.APART:
        for mark in unit.marks:
            if mark.how in (How.MASK, How.PAIR):
                yield warn(WarningKind.SPAN_PUT_BACK, mark.span)
    tags = set(unit.tags)
    for mark in unit.lost:
        if mark.kind is Kind.NUMBER:
            yield warn(WarningKind.NUMBER_PUT_BACK, mark.span)
        elif unit.attempt.stage is Stage.APART and mark in tags:
            yield warn(WarningKind.SPAN_PUT_BACK, mark.span)
    for mark in unit.marks:
        figure = text[slice(*moved(mark.span, -unit.span[0]))] if mark.kind is Kind.NUMBER else ""
        if any(is_ambiguous(number.text, source) for number in numbers_in(figure)):
            yield warn(WarningKind.NUMBER_AMBIGUOUS, mark.span)
    has_numbers = any(mark.kind is Kind.NUMBER for mark in unit.marks)
    if not has_numbers and any(map(str.isnumeric, text)):
        # They are not kept, and may be lost.
        found = [number for number in numbers_in(text, source) if not _is_marked(unit, number.span)]
        for number in missing_numbers(found, answer.text, source_language=source, target_language=target):
            yield warn(WarningKind.NUMBER_MISSING, moved(number.span, unit.span[0]))
    if answer.finish_reason is FinishReason.LENGTH:
        yield warn(WarningKind.OUTPUT_LIMIT)
    forbidden = passage.options.protection.forbidden
    if forbidden is not None and next(iter(forbidden.find(answer.text)), None) is not None:
        yield warn(WarningKind.FORBIDDEN_TERM)
    confidence = passage.bundle.manifest.confidence
    for kind, span in doubts(
        text,
        _text_of(passage, unit),
        length_ratio=confidence.length_ratio if confidence else None,
        count_pieces=passage.count_pieces,
        translated=[
            moved(span, -unit.span[0]) for span in outside(unit.span, (mark.span for mark in unit.marks))
        ],
    ):
        yield warn(kind, moved(span, unit.span[0]))


def _text_of(passage: Passage, unit: Unit) -> str:
    """A unit's best translation, without tags."""
    text = unit.answers[0].text
    return html.unescape(_TAG.sub("", text)) if passage.is_markup else text


def _is_marked(unit: Unit, span: Span) -> bool:
    start, end = moved(span, unit.span[0])
    return any(mark.span[0] < end and start < mark.span[1] for mark in unit.marks)
