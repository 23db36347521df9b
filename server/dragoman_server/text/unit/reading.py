"""Units as tasks: what of each must be kept, as the text and the model's tokens tell."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dragoman_bundle import Bundle

from dragoman_server.text.cleaning import Span
from dragoman_server.text.length import Unit
from dragoman_server.text.markup.element import elements_within
from dragoman_server.text.protection.protected import Protected, SpanKind, disjoint, within
from dragoman_server.text.protection.scripts import has_no_letter_of
from dragoman_server.text.protection.unknown import unreadable_words
from dragoman_server.text.segmentation import holds_letter
from dragoman_server.text.source import Source
from dragoman_server.text.unit.attempt import (
    Attempt,
    Task,
    around,
    first_attempt,
    make_task,
    text_outside,
    trim,
)
from dragoman_server.text.unit.capitals import by_vocabulary
from dragoman_server.text.warnings import TranslationWarning, WarningKind
from dragoman_server.wanted import Wanted

# Letters of other scripts than Latin begin here.
_BEYOND_LATIN = re.compile(
    r"[\u0370-\u1dff\u2c00-\ua71f\ua800-\ufdff\ufe70-\uffef\U00010000-\U0001bbff\U00020000-\U0003ffff]"
)


class TaskReader:
    """Reads the units of one text."""

    def __init__(self, source: Source, bundle: Bundle, *, is_automatic: bool, wanted: Wanted) -> None:
        """Its methods raise UnwantedError."""
        self._source = source
        self._bundle = bundle
        self._is_automatic = is_automatic
        self._wanted = wanted
        self._read: dict[Span, tuple[Task, Attempt | None]] = {}
        self.warnings: list[TranslationWarning] = []
        """The warnings that follow from the source alone."""

    def trim(self, spans: Sequence[Span]) -> list[Span]:
        """The units without emoji at their ends, and without those that hold nothing to translate."""
        source = self._source
        if not source.protected:
            return list(spans)
        text = source.cleaned.text
        found = []
        for span in self._wanted.each(spans):
            items = within(source.protected, span)
            trimmed = trim(text, span, items) if items else span
            if trimmed is not None and holds_letter(text_outside(text, trimmed, items)):
                found.append(trimmed)
        return found

    def render(self, span: Span) -> str:
        """The text that the model is shown first of a unit."""
        _, attempt = self._task(span)
        if attempt is None:
            return self._source.cleaned.tokenizer_text[slice(*span)]
        return attempt.pieces[0].shown[0].text

    def tasks(self, units: Sequence[Unit]) -> Iterator[tuple[Unit, Task, Attempt, Sequence[int] | None]]:
        """The units with what must be kept of them, what is tried at first, and its tokens if they are known.

        Those that the model can't read at all are left out.
        """
        unknown_id = self._bundle.manifest.source_ids.unk
        text = self._source.cleaned.tokenizer_text
        for unit in self._wanted.each(units):
            if unit.is_truncated and not self._task(unit.span)[0].is_plain:
                yield self._truncated(unit)
                continue
            is_unknown = unknown_id in unit.ids
            if is_unknown or _BEYOND_LATIN.search(text, *unit.span):
                found = self._unreadable(unit, is_unknown)
                if found is not None:
                    if holds_letter(text_outside(text, unit.span, found)):
                        task = self._make(unit.span, found)
                        yield unit, task, self._first(task), None
                    else:
                        self._warn(WarningKind.UNTRANSLATED, unit.span)
                    continue
            task, attempt = self._task(unit.span)
            if attempt is None:
                yield unit, task, around(self._source, task), None
            else:
                yield unit, task, attempt, unit.ids

    def _first(self, task: Task) -> Attempt:
        return first_attempt(self._source, task) or around(self._source, task)

    def _task(self, span: Span) -> tuple[Task, Attempt | None]:
        found = self._read.get(span)
        if found is None:
            self._wanted.check()
            task = self._make(span, within(self._source.protected, span))
            found = self._read[span] = task, first_attempt(self._source, task)
        return found

    def _make(self, span: Span, items: Sequence[Protected]) -> Task:
        manifest = self._bundle.manifest
        task = make_task(
            self._source,
            span,
            items,
            is_automatic=self._is_automatic,
            languages=(manifest.source_language, manifest.target_language),
        )
        if not task.in_capitals:
            return task
        text = self._source.cleaned.tokenizer_text[slice(*span)]
        return replace(task, small_letters=by_vocabulary(text, self._count_pieces))

    def _count_pieces(self, words: Sequence[str]) -> list[int]:
        return list(map(len, self._bundle.source_tokenizer.encode_ids(words)))

    def _unreadable(self, unit: Unit, is_unknown: bool) -> Sequence[Protected] | None:
        """The protected spans of a unit with those that can't be read; None where there are none, or none
        are to be protected. Tells of them."""
        source, language = self._source, self._bundle.manifest.source_language
        unknown = list(self._unknown_spans(unit)) if is_unknown else []
        start = unit.span[0]
        inside = [(a - start, b - start) for a, b in unknown]
        text = source.cleaned.tokenizer_text
        items = within(source.protected, unit.span)
        if has_no_letter_of(text_outside(text, unit.span, items), language):
            self._warn(WarningKind.FOREIGN_SCRIPT, unit.span)
        words = [
            word
            for word in unreadable_words(text, unit.span, inside, language=language)
            if not source.is_crossed(word.span)
        ]
        for word in words:
            self._warn(WarningKind.UNKNOWN_TOKENS, word.span)
        if not words or not self._is_automatic:
            return None
        return disjoint((*items, *words))

    def _unknown_spans(self, unit: Unit) -> Iterator[Span]:
        _, attempt = self._task(unit.span)
        if attempt is None:
            tokenized = self._bundle.source_tokenizer.encode(self.render(unit.span))
            for id_, (start, end) in zip(tokenized.ids, tokenized.spans, strict=True):
                if id_ == self._bundle.manifest.source_ids.unk and start < end:
                    yield unit.span[0] + start, unit.span[0] + end
            return
        rendered = attempt.pieces[0].shown[0]
        tokenized = self._bundle.source_tokenizer.encode(rendered.text)
        for id_, span in zip(tokenized.ids, tokenized.spans, strict=True):
            if id_ == self._bundle.manifest.source_ids.unk and span[0] < span[1]:
                yield rendered.of_source(span)

    def _truncated(self, unit: Unit) -> tuple[Unit, Task, Attempt, Sequence[int] | None]:
        """A truncated unit; nothing behind its last token is kept."""
        source = self._source
        _, attempt = self._task(unit.span)
        rendered = attempt.pieces[0].shown[0] if attempt else None
        text = rendered.text if rendered else source.cleaned.tokenizer_text[slice(*unit.span)]
        spans = self._bundle.source_tokenizer.encode(text).spans[: len(unit.ids)]
        last = max((end for _, end in spans), default=0)
        end = unit.span[0] + last
        if rendered is not None:
            end = rendered.ends[last - 1] if last else unit.span[0]
        items = within(source.protected, unit.span)
        complete = [item for item in items if item.span[1] <= end]
        for item in items:
            if item.span[1] > end and not item.floats and item.kind is not SpanKind.TERM:
                self._warn(WarningKind.SPAN_MISSING, item.span)
        task = self._make((unit.span[0], max(end, unit.span[0] + 1)), complete)
        # Every tag is there once, also one behind the end.
        task = replace(task, elements=tuple(elements_within(source.elements_in(unit.span), unit.span)))
        return unit, task, self._first(task), None

    def _warn(self, kind: WarningKind, span: Span) -> None:
        self.warnings.append(TranslationWarning(kind=kind, span=self._source.cleaned.of_caller(span)))
