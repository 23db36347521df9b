"""The way of one text: read, found in, cut, asked about, judged, and joined again.

Owns the order of the stages, and how answers to units become the translation of the whole text: in one round
of sentences, and in more where an answer loses what must be kept. Must not know gRPC, models, nor when
anything runs.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain

from dragoman_bundle import Bundle

from dragoman_server.engine.request import Sentence, SentenceResult
from dragoman_server.text.ask.units import ask
from dragoman_server.text.cut.fit import TextTooLongError
from dragoman_server.text.cut.segment import cut, filler_for
from dragoman_server.text.find.pairs import find_pairs
from dragoman_server.text.find.table import TABLE
from dragoman_server.text.find.unknown import names_in
from dragoman_server.text.judge.judging import judge, settled
from dragoman_server.text.judge.warnings import unit_confidence, unit_warnings
from dragoman_server.text.mapped import Mapped, Span, join
from dragoman_server.text.marks import Kind, Mark, blanked, chained, disjoint
from dragoman_server.text.messages import (
    Choices,
    Scope,
    choices_in,
    close_message,
    open_message,
    untranslated,
)
from dragoman_server.text.options import TextFormat, TranslationOptions
from dragoman_server.text.passage import Passage
from dragoman_server.text.read.attributes import Attributes
from dragoman_server.text.read.clean import clean, for_tokenizer
from dragoman_server.text.read.markup import read_markup
from dragoman_server.text.translated import (
    NO_TIME,
    SentenceConfidence,
    TranslatedText,
    first_of_each_text,
    joined,
)
from dragoman_server.wanted import Wanted


@dataclass(frozen=True, kw_only=True)
class Parted:
    """A text of several that are translated apart: of a message, or with texts in its tags."""

    outer: "Document"
    leaves: "tuple[Document, ...]"
    close: Callable[[TranslatedText, Sequence[TranslatedText]], TranslatedText]
    """The translation, of those of the outer text and of the leaves."""

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        """The sentences that the engine searches next."""
        return tuple(sentence for document in (self.outer, *self.leaves) for sentence in document.sentences)


Document = Passage | Parted
"""A caller's text on its way."""


def prepare(
    text: str,
    bundle: Bundle,
    options: TranslationOptions,
    deadline: float | None,
    ranges: Sequence[Span] = (),
    wanted: Wanted | None = None,
) -> Document:
    """A text, cut and tokenized. Raises TextTooLongError, and UnitTooLongError under LengthPolicy.REJECT.

    `deadline` is in seconds of `time.monotonic`; `ranges` of the text are protected. This and what follows
    of the passage raise UnwantedError once it is not `wanted`: None for until the deadline.
    """
    document = _prepare(text, bundle, options, wanted or Wanted(deadline), ranges, None)
    if isinstance(document, Parted) and options.max_text_tokens is not None:
        num_tokens = sum(len(sentence.source) for sentence in document.sentences)
        if num_tokens > options.max_text_tokens:
            raise TextTooLongError(num_tokens=num_tokens, max_tokens=options.max_text_tokens)
    return document


def _prepare(
    text: str,
    bundle: Bundle,
    options: TranslationOptions,
    wanted: Wanted,
    ranges: Sequence[Span],
    scope: Scope | None,
) -> Document:
    passage = find(read(text, bundle, options, wanted), ranges)
    choices = choices_in(passage)
    opened = None
    # A prefix is of one sentence, of which there would be several.
    if (choices or scope is not None) and not options.target_prefix:
        opened = open_message(passage, choices, scope)
    if opened is None:
        return _with_values(passage, choices)

    def ranges_in(part: Mapped) -> list[Span]:
        return [found for span in ranges if (found := part.onto(span))[0] < found[1]]

    outer = find(read(opened.outer.text, bundle, options, wanted), ranges_in(opened.outer))
    leaves = tuple(
        _prepare(leaf.text.text, bundle, options, wanted, ranges_in(leaf.text), leaf.scope)
        for leaf in wanted.each(opened.leaves)
    )
    close = partial(close_message, opened, is_markup=outer.is_markup)
    return Parted(outer=_with_values(outer), leaves=leaves, close=close)


def _with_values(passage: Passage, choices: Choices = ()) -> Document:
    """A text that is no message, whatever choices are in it, and the texts in its tags."""
    warnings = tuple(untranslated(passage, mark) for mark, _ in choices)
    outer = _asked(replace(passage, warnings=warnings))
    if passage.attributes is None:
        return outer
    # It is the first sentence's.
    options = replace(passage.options, target_prefix=())
    leaves = []
    for value in passage.wanted.each(passage.attributes.distinct):
        leaf = find(read(value, passage.bundle, options, passage.wanted))
        leaves.append(_with_values(leaf, choices_in(leaf)))
    return Parted(outer=outer, leaves=tuple(leaves), close=passage.attributes.close)


def _asked(passage: Passage) -> Passage:
    passage = _joined_marks(passage)
    passage = ask(passage, cut(passage))
    if all(unit.attempt.has_sentences for unit in passage.units):
        return passage
    return replace(passage, units=tuple(settled(passage, unit) for unit in passage.units))


def read(text: str, bundle: Bundle, options: TranslationOptions, wanted: Wanted) -> Passage:
    """A text that is cleaned, and of which the markup is read."""
    marks: list[Mark] = []
    attributes = None
    if options.text_format is TextFormat.HTML:
        source, marks, values = read_markup(text, options.protection.untranslated_elements)
        if values:
            manifest = bundle.manifest
            attributes = Attributes(text, values, (manifest.source_language, manifest.target_language))
    else:
        source = clean(text)
    return Passage(
        bundle=bundle,
        options=options,
        wanted=wanted,
        source=source,
        attributes=attributes,
        tokenizer_text=for_tokenizer(source.text),
        marks=tuple(mark for mark in marks if mark.kind not in (Kind.ELEMENT, Kind.TAG)),
        tags=tuple(mark for kind in (Kind.ELEMENT, Kind.TAG) for mark in marks if mark.kind is kind),
    )


def find(passage: Passage, ranges: Sequence[Span] = ()) -> Passage:
    """The passage with marks of all that must be kept of it, but for what follows from tokens."""
    source, protection = passage.source, passage.options.protection
    found = [finder.find(source.text) for finder in protection.finders]
    if protection.is_automatic:
        found.append(TABLE.find(source.text))
    # What nothing is left of is no mark.
    of_caller = [Mark(span=source.onto(span), kind=Kind.RANGE) for span in ranges]
    of_caller = [mark for mark in of_caller if mark.span[0] < mark.span[1]]
    candidates = [*passage.marks, *of_caller, *passage.wanted.each(chain(*found))]
    choices = [mark for mark in candidates if mark.kind is Kind.CHOICE]
    marks = disjoint(candidates)
    if choices:
        # One that is a part of something else is none; of what is within one nothing is lost.
        others = disjoint(mark for mark in candidates if mark.kind is not Kind.CHOICE)
        marks = disjoint((*(mark for mark in choices if not _is_part(mark, others)), *others))
    if protection.is_automatic:
        without_marks = blanked(source.text, marks, "_")
        names = names_in(without_marks, passage.languages, passage.count_pieces)
        pairs = find_pairs(source.text, marks, passage.languages[1])
        if more := [*passage.wanted.each(chain(names, pairs))]:
            marks = disjoint((*marks, *more))
    return replace(passage, marks=marks)


def _is_part(mark: Mark, others: Sequence[Mark]) -> bool:
    rank = bisect_right(others, mark.span[0], key=lambda other: other.span[0]) - 1
    return rank >= 0 and others[rank].span[1] >= mark.span[1]


def _joined_marks(passage: Passage) -> Passage:
    """The passage with marks that no tag stands within.

    Those that touch and stay as they are, such as "%s%%", are one, unless a tag stands between them.
    """
    if not passage.marks:
        return passage
    marks: Iterable[Mark] = passage.marks
    if passage.tags:
        marks = _uncrossed(passage, marks)

    def are_one(before: Mark, mark: Mark) -> bool:
        touch = before.span[1] == mark.span[0] and not passage.is_crossed((before.span[0], mark.span[1]))
        return touch and before.is_unchanged and mark.is_unchanged

    chains = chained(marks, are_one)
    return replace(
        passage,
        marks=tuple(replace(chain[0], span=(chain[0].span[0], chain[-1].span[1])) for chain in chains),
    )


def _uncrossed(passage: Passage, marks: Iterable[Mark]) -> Iterator[Mark]:
    """The marks that no tag stands within: it would be lost, or there twice.

    What is before the tag is kept all the same, as the beginning of a URL.
    """
    for mark in marks:
        start, end = mark.span
        edge = passage.edge_behind(start)
        if edge is None or edge >= end:
            yield mark
        elif mark.output is None:
            yield replace(mark, span=(start, edge))


def advance(document: Document, results: Sequence[SentenceResult]) -> Document:
    """The text after these results of its sentences; it may have other sentences then."""
    return _advanced(document, iter(results))


def _advanced(document: Document, remaining: Iterator[SentenceResult]) -> Document:
    if isinstance(document, Parted):
        outer = _advanced(document.outer, remaining)
        leaves = tuple(_advanced(leaf, remaining) for leaf in document.leaves)
        return replace(document, outer=outer, leaves=leaves)
    passage = document
    units = []
    for unit in passage.wanted.each(passage.units):
        if not unit.answers:
            pieces = unit.attempt.pieces
            of_unit = [[next(remaining) for shown in piece.shown if shown.ids] for piece in pieces]
            unit = judge(passage, unit, of_unit)
        units.append(unit)
    return replace(passage, units=tuple(units))


def complete(document: Document, *, waited_seconds: float = 0.0) -> TranslatedText:
    """Joins the answers to the units of a text, which has no more sentences, with what stands between them.

    They `waited_seconds` for room in the engine's queue before they were in it.
    """
    if isinstance(document, Passage):
        return _completed(document, waited_seconds)
    parts = document.outer, *document.leaves
    outer, *leaves = (complete(part, waited_seconds=waited_seconds) for part in parts)
    return document.close(outer, leaves)


def _completed(passage: Passage, waited_seconds: float) -> TranslatedText:
    assert not passage.sentences
    lists = [unit.answers for unit in passage.units]
    filler = filler_for(passage.languages[1])
    # Even of sentences that differ the joined texts may be the same: "a b" and "c", "a" and "b c".
    hypotheses = first_of_each_text(
        # A sentence with fewer hypotheses gives its last.
        joined(passage.gaps, [answers[min(rank, len(answers) - 1)] for answers in lists], filler=filler)
        for rank in range(max(map(len, lists), default=0))
    )
    timings = max((unit.timings for unit in passage.units), key=sum, default=NO_TIME)
    caller_text = passage.source.origin
    untouched = "".join(passage.gaps) if passage.marks else caller_text
    warnings = [*passage.warnings]
    for unit in passage.wanted.each(passage.units):
        warnings += unit_warnings(passage, unit)
    return TranslatedText(
        text=hypotheses[0].text if hypotheses else "" if caller_text.isspace() else untouched,
        hypotheses=hypotheses,
        split=passage.split,
        truncated=passage.truncated,
        num_units=len(passage.units),
        num_source_tokens=sum(
            len(shown.ids) for unit in passage.units for piece in unit.attempt.pieces for shown in piece.shown
        ),
        num_target_tokens=hypotheses[0].num_tokens if hypotheses else 0,
        timings=timings._replace(queue=waited_seconds + timings.queue) if passage.units else timings,
        warnings=tuple(sorted(warnings, key=lambda warning: warning.span)),
        confidences=tuple(_confidences(passage, filler)),
    )


def _confidences(passage: Passage, filler: str) -> Iterator[SentenceConfidence]:
    if passage.bundle.manifest.confidence is None:
        return
    texts = [unit.answers[0].text for unit in passage.units]
    _, offsets = join(passage.gaps, texts, filler=filler)
    for unit, text, offset in zip(passage.units, texts, offsets, strict=True):
        confidence = unit_confidence(passage, unit)
        if confidence is not None:
            source, target = passage.source.back(unit.span), (offset, offset + len(text))
            yield SentenceConfidence(source=source, target=target, confidence=confidence)
