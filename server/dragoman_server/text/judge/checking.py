"""Whether an answer of the model has what it must have: masks once each, numbers' values, terms."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from dragoman_server.text.ask.masks import occurrences
from dragoman_server.text.brackets import (
    adds_signs,
    call_within,
    has_words_outside,
    is_within,
    matched,
    sort_of,
)
from dragoman_server.text.find.numbers import missing_numbers, numbers_in
from dragoman_server.text.find.pairs import find_pairs as signs_in
from dragoman_server.text.find.terms import by_stems
from dragoman_server.text.mapped import Span, moved
from dragoman_server.text.marks import How, Kind, Mark, beginning_outside, text_outside
from dragoman_server.text.passage import Form, Passage, Unit
from dragoman_server.text.words import find_word

Found = tuple[Span, Mark]
"""Where in an answer the mask of a mark stands."""


def find_masks(masks: Sequence[tuple[str, Mark]], answer: str) -> list[Found] | None:
    """Where each mask stands in an answer, in its order; None unless each stands there once."""
    found = []
    for word, mark in masks:
        places = occurrences(word, answer)
        if len(places) != 1:
            return None
        found.append((places[0], mark))
    return sorted(found, key=lambda place: place[0])


def find_pairs(
    passage: Passage, unit: Unit, form: Form, answer: str, masks: Sequence[Found]
) -> list[Found] | None:
    """Where in an answer the brackets and quotation marks stand that the model was shown of a unit.

    None unless it has as many of each sort, as deep in each other, with something in each, and the same masks
    in them. Where it was shown none, there must be none.
    """
    signs = [mark for mark in unit.marks if mark.how is How.PAIR]
    if not signs:
        return []
    spans = ((mark, form.text.onto(mark.span)) for mark in _left(unit, form) if mark.how is How.PAIR)
    signs = [mark for mark, (start, end) in spans if start < end]
    wanted = sorted(matched(signs), key=sort_of)
    answered = signs_in(answer, (), passage.languages[1])
    found = sorted(matched(answered), key=sort_of)
    others = text_outside(passage.source.text, unit.span, unit.marks)
    is_more = adds_signs(text_outside(answer, (0, len(answer)), answered), others)
    is_other = list(map(sort_of, found)) != list(map(sort_of, wanted)) or _depths(answered) != _depths(signs)
    if is_more or is_other:
        return None
    pairs = list(zip(found, wanted, strict=True))
    if any(
        is_within(span, one) != is_within(mark.span, other) for span, mark in masks for one, other in pairs
    ) or any(call_within(answer, one) != call_within(passage.source.text, other) for one, other in pairs):
        return None
    if has_words_outside(answer, found) != has_words_outside(
        passage.source.text[: unit.span[1]], wanted, unit.span[0]
    ):
        return None
    return [
        (place.span, mark)
        for places, pair in pairs
        for place, mark in zip(places, pair, strict=True)
        if place and mark
    ]


def _depths(signs: Sequence[Mark]) -> list[int]:
    """How many pairs are open behind each sign, sorted: others where one came to stand in another."""
    return sorted(accumulate(1 if sign.kind is Kind.OPENING else -1 for sign in signs))


def lost_numbers(
    passage: Passage, unit: Unit, form: Form, answer: str, masks: Sequence[Found]
) -> tuple[Mark, ...]:
    """The numbers of a unit that were left to the model, and that its answer lacks outside of the masks."""
    left = {mark.span: mark for mark in _left(unit, form) if mark.kind is Kind.NUMBER}
    if not left:
        return ()
    source, target = passage.languages
    text = passage.tokenizer_text[slice(*unit.span)]
    numbers = [
        replace(number, span=place)
        for number in numbers_in(text, source)
        if (place := moved(number.span, unit.span[0])) in left
    ]
    edges = [0, *(place for span, _ in masks for place in span), len(answer)]
    rest = " ".join(answer[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True))
    missing = missing_numbers(numbers, rest, source_language=source, target_language=target)
    return tuple(left[number.span] for number in missing)


def lacks_terms(passage: Passage, unit: Unit, form: Form, answer: str) -> bool:
    """Whether an answer lacks a term that was left to the model, in any form if they are inflected."""
    outputs = [mark.output for mark in _left(unit, form) if mark.kind is Kind.TERM and mark.output]
    if not outputs:
        return False

    def fold(text: str) -> str:
        if not passage.options.protection.is_inflected:
            return text.casefold()
        return by_stems(text, passage.languages[1]).text.casefold()

    folded = fold(answer)
    # Longest first: a term may be a part of another.
    for output in sorted(map(fold, outputs), key=len, reverse=True):
        found = find_word(output, folded)
        if found is None:
            return True
        folded = folded[: found[0]] + " " + folded[found[1] :]
    return False


def _left(unit: Unit, form: Form) -> Sequence[Mark]:
    """The marks of a unit that no mask stands for, or for an element that they stand in."""
    return beginning_outside([mark for _, mark in form.masks], unit.marks)
