"""A text's units as the model is shown them first: fitted to it, and without words that it can't read."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from dragoman_server.text.ask.attempts import first_attempt, plain_attempt, tokenized, with_end
from dragoman_server.text.ask.fit import FittedUnit, TextTooLongError, fit
from dragoman_server.text.cut.units import unit_at
from dragoman_server.text.find.unknown import has_no_letter_of, unreadable_words
from dragoman_server.text.mapped import Mapped, Span, moved
from dragoman_server.text.marks import How, Mark, disjoint, is_text, text_outside, within
from dragoman_server.text.passage import Passage, Stage, Unit
from dragoman_server.text.seams import tags_of
from dragoman_server.text.translated import TranslationWarning, WarningKind

# Letters of other scripts than Latin begin here.
_BEYOND_LATIN = re.compile(
    r"[\u0370-\u1dff\u2c00-\ua71f\ua800-\ufdff\ufe70-\uffef\U00010000-\U0001bbff\U00020000-\U0003ffff]"
)


def ask(passage: Passage) -> Passage:
    """The passage with the first attempt at each unit; a unit that is too long is cut.

    Units that the model can't read at all are left out. Raises UnitTooLongError and TextTooLongError.
    """
    manifest, options = passage.bundle.manifest, passage.options
    asking, spans = _Asking(passage), [unit.span for unit in passage.units]
    fitted = fit(
        passage.source,
        spans,
        tokenizer=passage.bundle.source_tokenizer,
        max_tokens=manifest.decoding.max_source_tokens,
        num_ends=int(manifest.source_end),
        policy=options.length_policy,
        render=asking.shown_at,
        whole=[mark.span for mark in passage.marks],
    )
    units = [unit for one in passage.wanted.each(fitted) if (unit := asking.asked(one)) is not None]
    if options.max_text_tokens is not None:
        num_tokens = sum(unit.attempt.num_tokens for unit in units)
        if num_tokens > options.max_text_tokens:
            raise TextTooLongError(num_tokens=num_tokens, max_tokens=options.max_text_tokens)
    return replace(
        passage,
        units=tuple(units),
        split=[unit.span for unit in fitted] != spans,
        truncated=any(unit.is_truncated for unit in fitted),
        warnings=(*passage.warnings, *asking.warnings),
    )


class _Asking:
    """The units of one text, by their spans."""

    def __init__(self, passage: Passage) -> None:
        self._passage = passage
        self._units = {unit.span: self._begun(unit) for unit in passage.wanted.each(passage.units)}
        self.warnings: list[TranslationWarning] = []

    def shown_at(self, span: Span) -> str:
        """The text that the model is shown first of a unit, or that of the unit where it is cut apart."""
        return self._shown(self._unit(span)).text

    def asked(self, fitted: FittedUnit) -> Unit | None:
        """The unit with its first attempt; None where the model can't read anything of it."""
        passage, unit = self._passage, self._unit(fitted.span)
        span, rest = unit.span, ""
        marks: Sequence[Mark] = within(passage.marks, span)
        known: Sequence[int] | None = fitted.ids if unit.attempt.stage is Stage.FIRST else None
        if fitted.is_truncated:
            end = self._end_of(unit, len(fitted.ids))
            if passage.is_markup:
                ends = passage.source.ends
                rest = tags_of(passage.source.origin[ends[end - 1] : ends[span[1] - 1]])
            for mark in marks:
                if mark.span[1] > end and mark.how is How.MASK:
                    self._warn(WarningKind.SPAN_MISSING, mark.span)
            span, marks = (span[0], end), [mark for mark in marks if mark.span[1] <= end]
        words = self._unreadable(unit, span, marks, fitted.ids)
        # Of a plain unit the tokens are cut, and no word: that is linked as a whole.
        if words or (fitted.is_truncated and not unit.is_plain):
            marks = disjoint((*marks, *words))
            if words and not is_text(passage.tokenizer_text, span, marks):
                self._warn(WarningKind.UNTRANSLATED, span)
                return None
            cut = unit_at(passage, span, marks)
            unit, known = self._begun(cut), None
        unit = replace(unit, replaced=fitted.span, rest=rest)
        if unit.is_plain:
            if known is None:
                text = passage.tokenizer_text[slice(*unit.span)]
                [known] = passage.bundle.source_tokenizer.encode_ids([text])
            ids = with_end(known, passage.bundle)
            return replace(unit, attempt=plain_attempt(passage, unit.span, ids))
        return replace(unit, attempt=tokenized(unit.attempt, passage.bundle, known))

    def _unit(self, span: Span) -> Unit:
        """The unit at a span, with its first attempt unless it is plain."""
        if span not in self._units:
            self._passage.wanted.check()
            self._units[span] = self._begun(unit_at(self._passage, span))
        return self._units[span]

    def _begun(self, unit: Unit) -> Unit:
        return unit if unit.is_plain else replace(unit, attempt=first_attempt(self._passage, unit))

    def _shown(self, unit: Unit) -> Mapped:
        if unit.attempt.stage is Stage.FIRST and not unit.is_plain:
            return unit.attempt.pieces[0].forms[0].text
        return Mapped.of(self._passage.tokenizer_text).part(unit.span)

    def _unreadable(self, unit: Unit, span: Span, marks: Sequence[Mark], ids: Sequence[int]) -> list[Mark]:
        """Marks of the words of a unit's span that can't be read, if they are to be kept; they are warned of
        at any rate. `ids` are the tokens that stand for the span."""
        passage, text = self._passage, self._passage.tokenizer_text
        is_unknown = not passage.bundle.source_tokenizer.unreadable_ids.isdisjoint(ids)
        if not (is_unknown or _BEYOND_LATIN.search(text, *span)):
            return []
        language = passage.languages[0]
        rest = text_outside(text, span, marks)
        unknown = list(self._unknown_spans(unit, len(ids))) if is_unknown else []
        is_foreign = has_no_letter_of(rest, language)
        found = unreadable_words(text, span, unknown, language=language)
        # A bracket stands around words, and need not be read.
        brackets = {mark.span[0] for mark in unit.marks if mark.how is How.PAIR}
        words = [word for word in found if not (passage.is_crossed(word.span) or word.span[0] in brackets)]
        if is_foreign:
            self._warn(WarningKind.FOREIGN_SCRIPT, span)
        for word in words:
            self._warn(WarningKind.UNKNOWN_TOKENS, word.span)
        return words if passage.options.protection.is_automatic else []

    def _unknown_spans(self, unit: Unit, num_tokens: int) -> Iterator[Span]:
        """The ranges of a unit that the first of its tokens do not tell."""
        shown = self._shown(unit)
        tokenizer = self._passage.bundle.source_tokenizer
        tokens = tokenizer.encode(shown.text)
        for id_, span in islice(zip(tokens.ids, tokens.spans, strict=True), num_tokens):
            if id_ in tokenizer.unreadable_ids and span[0] < span[1]:
                yield moved(shown.back(span), -unit.span[0])

    def _end_of(self, unit: Unit, num_tokens: int) -> int:
        """Where the part of a unit ends that so many of its tokens stand for, behind its first character."""
        shown, start = self._shown(unit), unit.span[0]
        spans = self._passage.bundle.source_tokenizer.encode(shown.text).spans[:num_tokens]
        last = max((end for _, end in spans), default=0)
        return max(shown.back((0, last))[1] if last else start, start + 1)

    def _warn(self, kind: WarningKind, span: Span) -> None:
        self.warnings.append(TranslationWarning(kind=kind, span=self._passage.source.back(span)))
