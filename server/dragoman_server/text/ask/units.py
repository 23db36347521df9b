"""Units, with what must be kept of each and what the model is shown of it first."""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dragoman_bundle.languages import primary_language

from dragoman_server.text.ask.attempts import first_attempt, plain_attempt, tokenized, with_end
from dragoman_server.text.cut.fit import FittedUnit, TextTooLongError, fit
from dragoman_server.text.cut.rules import rules_for
from dragoman_server.text.cut.segment import is_text
from dragoman_server.text.find.numbers import numbers_in, written
from dragoman_server.text.find.unknown import has_no_letter_of, unreadable_words
from dragoman_server.text.mapped import Mapped, Span, moved
from dragoman_server.text.marks import (
    How,
    Kind,
    Mark,
    beginning_outside,
    cut_to,
    disjoint,
    outside,
    text_outside,
    within,
)
from dragoman_server.text.passage import Passage, Stage, Unit
from dragoman_server.text.translated import TranslationWarning, WarningKind
from dragoman_server.text.words import by_vocabulary, in_sentence_case, is_in_capitals, is_in_title_case

# Letters of other scripts than Latin begin here.
_BEYOND_LATIN = re.compile(
    r"[\u0370-\u1dff\u2c00-\ua71f\ua800-\ufdff\ufe70-\uffef\U00010000-\U0001bbff\U00020000-\U0003ffff]"
)


_OF_QUANTITIES = frozenset((Kind.REFERENCE, Kind.EMOJI, Kind.RAISED, Kind.NAME, Kind.UNKNOWN))
"""The kinds of marks that may be a part of a number with what it counts."""


def ask(passage: Passage, spans: Sequence[Span]) -> Passage:
    """The passage with units at the spans, each with its first attempt; a span that is too long is cut.

    Units that the model can't read at all are left out. Raises UnitTooLongError and TextTooLongError.
    """
    manifest, options = passage.bundle.manifest, passage.options
    reader = _UnitReader(passage)
    fitted = fit(
        passage.source,
        spans,
        tokenizer=passage.bundle.source_tokenizer,
        max_tokens=manifest.decoding.max_source_tokens,
        num_ends=int(manifest.source_end),
        policy=options.length_policy,
        render=reader.text,
        whole=[mark.span for mark in passage.marks],
    )
    units = [unit for one in passage.wanted.each(fitted.units) if (unit := reader.read(one)) is not None]
    num_tokens = sum(
        len(shown.ids) for unit in units for piece in unit.attempt.pieces for shown in piece.shown
    )
    if options.max_text_tokens is not None and num_tokens > options.max_text_tokens:
        raise TextTooLongError(num_tokens=num_tokens, max_tokens=options.max_text_tokens)
    return replace(
        passage,
        units=tuple(units),
        split=fitted.split,
        truncated=fitted.truncated,
        warnings=(*passage.warnings, *reader.warnings),
    )


class _UnitReader:
    """Reads the units of one text."""

    def __init__(self, passage: Passage) -> None:
        self._passage = passage
        self._units: dict[Span, Unit] = {}
        self._small = rules_for(primary_language(passage.languages[0])).small_in_titles
        self.warnings: list[TranslationWarning] = []

    def text(self, span: Span) -> str:
        """The text that the model is shown first of a unit, or that of the unit where it is cut apart."""
        self._passage.wanted.check()
        unit = self._unit(span)
        return self._passage.tokenizer_text[slice(*span)] if unit.is_plain else self._shown(unit).text

    def read(self, fitted: FittedUnit) -> Unit | None:
        """The unit with its first attempt; None where the model can't read anything of it."""
        passage, span = self._passage, fitted.span
        unit = self._unit(span)
        known: Sequence[int] | None = fitted.ids if unit.attempt.stage is Stage.FIRST else None
        if fitted.is_truncated and not unit.is_plain:
            unit, known = self._truncated(unit, len(fitted.ids)), None
        else:
            is_unknown = not passage.bundle.source_tokenizer.unreadable_ids.isdisjoint(fitted.ids)
            if is_unknown or _BEYOND_LATIN.search(passage.tokenizer_text, *span):
                words = self._unreadable(unit, is_unknown)
                if words:
                    marks = disjoint((*within(passage.marks, span), *words))
                    if not is_text(passage.tokenizer_text, span, marks):
                        self._warn(WarningKind.UNTRANSLATED, span)
                        return None
                    unit, known = self._make(span, marks), None
        if unit.is_plain and known is not None:
            ids = with_end(known, passage.bundle)
            return Unit(span=span, replaced=span, attempt=plain_attempt(passage, span, ids))
        return replace(unit, attempt=tokenized(unit.attempt, passage.bundle, known))

    def _unit(self, span: Span) -> Unit:
        found = self._units.get(span)
        if found is None:
            self._passage.wanted.check()
            found = self._units[span] = self._make(span, within(self._passage.marks, span))
        return found

    def _make(self, span: Span, marks: Sequence[Mark], elements: Sequence[Mark] | None = None) -> Unit:
        """The unit, with its first attempt unless it is plain, and with other `elements` where given."""
        passage = self._passage
        text = passage.source.text[slice(*span)]
        in_capitals, small_letters = False, ""
        numbers: list[Mark] = []
        if passage.options.protection.is_automatic:
            masked = [mark.span for mark in marks if mark.kind is not Kind.TERM]
            words = " ".join(passage.source.text[a:b] for a, b in outside(span, masked)) if masked else text
            in_capitals = is_in_capitals(words)
            if in_capitals or (self._small and is_in_title_case(words, self._small)):
                lower = by_vocabulary if in_capitals else in_sentence_case
                small_letters = lower(passage.tokenizer_text[slice(*span)], passage.count_pieces)
            if any(map(str.isnumeric, text)):
                numbers = list(self._numbers(span, marks))
                marks = beginning_outside(numbers, marks)
        tags = cut_to(passage.tags_in(span), span) if passage.tags else ()
        if not (marks or numbers or tags or elements or small_letters):
            return Unit(span=span, replaced=span)
        if elements is not None:
            tags = (*elements, *(tag for tag in tags if tag.kind is Kind.TAG))
        unit = Unit(
            span=span,
            replaced=span,
            marks=tuple(sorted((*marks, *numbers), key=lambda mark: mark.span)) if numbers else tuple(marks),
            tags=tags,
            in_capitals=in_capitals,
            small_letters=small_letters,
        )
        return replace(unit, attempt=first_attempt(passage, unit))

    def _numbers(self, span: Span, marks: Sequence[Mark]) -> Iterator[Mark]:
        """The numbers whose values are to be kept, with what they count: those that cut no mark.

        A unit, or a currency's sign, that was to be kept by itself is a part of its number.
        """
        passage = self._passage
        source, target = passage.languages
        free = deque(outside(span, [mark.span for mark in marks if mark.kind not in _OF_QUANTITIES]))
        small = deque(mark for mark in marks if mark.kind in _OF_QUANTITIES)
        for number in numbers_in(passage.tokenizer_text[slice(*span)], source):
            place = moved(number.span, span[0])
            while free and free[0][1] < place[1]:
                free.popleft()
            while small and small[0].span[1] <= place[0]:
                small.popleft()
            is_free = bool(free) and free[0][0] <= place[0] and not passage.is_crossed(place)
            if small and small[0].span[0] < place[1]:
                is_part = bool(number.units) or small[0].kind is Kind.RAISED
                is_free = is_free and is_part and place[0] <= small[0].span[0]
                is_free = is_free and small[0].span[1] <= place[1]
            if is_free and "<" in passage.source.origin[slice(*passage.source.back(place))]:
                # It has the tags of what is raised.
                yield Mark(span=place, kind=Kind.REFERENCE)
            elif is_free:
                output = written(number, source_language=source, target_language=target)
                yield Mark(span=place, kind=Kind.NUMBER, output=output)

    def _shown(self, unit: Unit) -> Mapped:
        if unit.attempt.stage is Stage.FIRST and not unit.is_plain:
            return unit.attempt.pieces[0].shown[0].text
        return Mapped.of(self._passage.tokenizer_text).part(unit.span)

    def _unreadable(self, unit: Unit, is_unknown: bool) -> list[Mark]:
        """Marks of the words that can't be read, if they are to be kept; they are warned of at any rate."""
        passage, language = self._passage, self._passage.languages[0]
        text, start = passage.tokenizer_text, unit.span[0]
        unknown = [moved(span, -start) for span in self._unknown_spans(unit)] if is_unknown else []
        if has_no_letter_of(text_outside(text, unit.span, within(passage.marks, unit.span)), language):
            self._warn(WarningKind.FOREIGN_SCRIPT, unit.span)
        # A bracket stands around words, and need not be read.
        brackets = {mark.span[0] for mark in unit.marks if mark.how is How.PAIR}
        words = [
            word
            for word in unreadable_words(text, unit.span, unknown, language=language)
            if not (passage.is_crossed(word.span) or word.span[0] in brackets)
        ]
        for word in words:
            self._warn(WarningKind.UNKNOWN_TOKENS, word.span)
        return words if passage.options.protection.is_automatic else []

    def _unknown_spans(self, unit: Unit) -> Iterator[Span]:
        shown = self._shown(unit)
        tokenizer = self._passage.bundle.source_tokenizer
        tokens = tokenizer.encode(shown.text)
        for id_, span in zip(tokens.ids, tokens.spans, strict=True):
            if id_ in tokenizer.unreadable_ids and span[0] < span[1]:
                yield shown.back(span)

    def _truncated(self, unit: Unit, num_tokens: int) -> Unit:
        """A unit of which nothing behind its last token is kept, but every tag."""
        passage, start = self._passage, unit.span[0]
        shown = self._shown(unit)
        spans = passage.bundle.source_tokenizer.encode(shown.text).spans[:num_tokens]
        last = max((end for _, end in spans), default=0)
        end = shown.back((0, last))[1] if last else start
        marks = within(passage.marks, unit.span)
        for mark in marks:
            if mark.span[1] > end and mark.how is How.MASK:
                self._warn(WarningKind.SPAN_MISSING, mark.span)
        truncated = self._make(
            (start, max(end, start + 1)),
            [mark for mark in marks if mark.span[1] <= end],
            [tag for tag in unit.tags if tag.kind is Kind.ELEMENT],
        )
        return replace(truncated, replaced=unit.span)

    def _warn(self, kind: WarningKind, span: Span) -> None:
        self.warnings.append(TranslationWarning(kind=kind, span=self._passage.source.back(span)))
