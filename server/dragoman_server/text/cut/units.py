"""The units of a text, each with all that must be kept of it."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dragoman_bundle.languages import primary_language

from dragoman_server.text.cut.rules import rules_for
from dragoman_server.text.cut.segment import cut_spans
from dragoman_server.text.find.notation import written
from dragoman_server.text.find.numbers import numbers_in
from dragoman_server.text.mapped import Span, moved
from dragoman_server.text.marks import Kind, Mark, beginning_outside, chained, cut_to, outside, within
from dragoman_server.text.passage import Passage, Unit
from dragoman_server.text.words import by_vocabulary, in_sentence_case, is_in_capitals, is_in_title_case

_OF_QUANTITIES = frozenset((Kind.REFERENCE, Kind.EMOJI, Kind.RAISED, Kind.NAME, Kind.UNKNOWN))
"""The kinds of marks that may be a part of a number with what it counts."""


def cut(passage: Passage) -> Passage:
    """The passage with its units, none of which was asked for yet."""
    passage = _joined_marks(passage)
    spans = passage.wanted.each(cut_spans(passage))
    return replace(passage, units=tuple(unit_at(passage, span) for span in spans))


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


def unit_at(passage: Passage, span: Span, marks: Sequence[Mark] | None = None) -> Unit:
    """The unit at a span, with the passage's marks within that, or with these."""
    if marks is None:
        marks = within(passage.marks, span)
    text = passage.source.text[slice(*span)]
    in_capitals, small_letters = False, ""
    numbers: list[Mark] = []
    if passage.options.protection.is_automatic:
        masked = [mark.span for mark in marks if mark.kind is not Kind.TERM]
        words = " ".join(passage.source.text[a:b] for a, b in outside(span, masked)) if masked else text
        in_capitals = is_in_capitals(words)
        small = rules_for(primary_language(passage.languages[0])).small_in_titles
        if in_capitals or (small and is_in_title_case(words, small)):
            lower = by_vocabulary if in_capitals else in_sentence_case
            small_letters = lower(passage.tokenizer_text[slice(*span)], passage.count_pieces)
        if any(map(str.isnumeric, text)):
            numbers = list(_numbers(passage, span, marks))
            marks = beginning_outside(numbers, marks)
    return Unit(
        span=span,
        replaced=span,
        marks=tuple(sorted((*marks, *numbers), key=lambda mark: mark.span)) if numbers else tuple(marks),
        tags=cut_to(passage.tags_in(span), span) if passage.tags else (),
        in_capitals=in_capitals,
        small_letters=small_letters,
    )


def _numbers(passage: Passage, span: Span, marks: Sequence[Mark]) -> Iterator[Mark]:
    """The numbers whose values are to be kept, with what they count: those that cut no mark.

    A unit, or a currency's sign, that was to be kept by itself is a part of its number.
    """
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
