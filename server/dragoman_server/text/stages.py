"""The way of one text: read, found in, cut, asked about, judged, and joined again.

Owns the order of the stages, and how answers to units become the translation of the whole text: in one round
of sentences, and in more where an answer loses what must be kept. Must not know gRPC, models, nor when
anything runs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from dragoman_bundle import Bundle

from dragoman_server.engine.request import Sentence, SentenceResult
from dragoman_server.text.ask.asking import ask
from dragoman_server.text.ask.attempts import ask_again
from dragoman_server.text.ask.fit import TextTooLongError, UnitTooLongError
from dragoman_server.text.attributes import Attributes
from dragoman_server.text.cut.segment import filler_for
from dragoman_server.text.cut.units import cut
from dragoman_server.text.find.finding import find
from dragoman_server.text.judge.judging import judge
from dragoman_server.text.judge.warnings import unit_confidence, unit_warnings
from dragoman_server.text.mapped import Mapped, Span, join
from dragoman_server.text.messages import Scope, close_message, open_message
from dragoman_server.text.options import TranslationOptions
from dragoman_server.text.passage import Passage
from dragoman_server.text.read.markup import read
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
    document = _prepared(text, bundle, options, wanted or Wanted(deadline), ranges)
    if isinstance(document, Parted) and options.max_text_tokens is not None:
        num_tokens = sum(len(sentence.source) for sentence in document.sentences)
        if num_tokens > options.max_text_tokens:
            raise TextTooLongError(num_tokens=num_tokens, max_tokens=options.max_text_tokens)
    return document


def _prepared(
    text: str,
    bundle: Bundle,
    options: TranslationOptions,
    wanted: Wanted,
    ranges: Sequence[Span] = (),
    scope: Scope | None = None,
    *,
    is_whole: bool = False,
) -> Document:
    """A text, of a message if it has a scope. One that is whole is not opened."""
    passage = read(text, bundle, options, wanted)
    passage = find(passage, ranges)
    passage, opened = open_message(passage, scope, is_whole=is_whole)

    def prepared(part: Mapped, scope: Scope | None, *, is_whole: bool) -> Document:
        spans = [found for span in ranges if (found := part.onto(span))[0] < found[1]]
        try:
            return _prepared(part.text, bundle, options, wanted, spans, scope, is_whole=is_whole)
        except UnitTooLongError as error:
            raise error.within(part) from None

    if opened is not None:
        outer = prepared(opened.outer, None, is_whole=True)
        leaves = [prepared(leaf.text, leaf.scope, is_whole=False) for leaf in wanted.each(opened.leaves)]
        close = partial(close_message, opened, is_markup=passage.is_markup)
        return Parted(outer=outer, leaves=tuple(leaves), close=close)
    passage = cut(passage)
    passage = ask(passage)
    if not passage.values:
        return passage
    attributes = Attributes(text, passage.values, passage.languages)
    # A prefix is of the first sentence, and ranges are of what stands between tags.
    options, ranges = replace(options, target_prefix=()), ()
    values = (Mapped.of(text).part(span) for span in attributes.distinct.values())
    leaves = [prepared(value, None, is_whole=True) for value in wanted.each(values)]
    return Parted(outer=passage, leaves=tuple(leaves), close=attributes.close)


def advance(document: Document, results: Sequence[SentenceResult]) -> Document:
    """The text after these results of its sentences; it may have other sentences then."""
    return _advanced(document, iter(results))


def _advanced(document: Document, remaining: Iterator[SentenceResult]) -> Document:
    if isinstance(document, Passage):
        return _judged(document, remaining)
    outer = _advanced(document.outer, remaining)
    leaves = tuple(_advanced(leaf, remaining) for leaf in document.leaves)
    return replace(document, outer=outer, leaves=leaves)


def _judged(passage: Passage, remaining: Iterator[SentenceResult]) -> Passage:
    units = []
    for unit in passage.wanted.each(passage.units):
        if not unit.answers:
            pieces = unit.attempt.pieces
            of_unit = [[next(remaining) for form in piece.forms if form.ids] for piece in pieces]
            unit = judge(passage, unit, of_unit)
            unit = unit if unit.answers else ask_again(passage, unit)
        units.append(unit)
    return replace(passage, units=tuple(units))


def complete(document: Document, *, waited_seconds: float = 0.0) -> TranslatedText:
    """Joins the answers to the units of a text, which has no more sentences, with what stands between them.

    A unit that the tokenizer sees nothing in is its own answer. They `waited_seconds` for room in the
    engine's queue before they were in it.
    """
    if isinstance(document, Passage):
        return _completed(document, waited_seconds)
    parts = document.outer, *document.leaves
    outer, *leaves = (complete(part, waited_seconds=waited_seconds) for part in parts)
    return document.close(outer, leaves)


def _completed(passage: Passage, waited_seconds: float) -> TranslatedText:
    assert not passage.sentences
    # The engine finds nothing to do for some.
    passage = _judged(passage, iter(()))
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
        num_source_tokens=sum(unit.attempt.num_tokens for unit in passage.units),
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
