"""Attempts to translate a unit, one after the other until one keeps all that must be kept; see `Stage`."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from dragoman_bundle import Bundle

from dragoman_server.text.ask.masks import NUM_VARIANTS, masks_for
from dragoman_server.text.brackets import has_words_outside, matched
from dragoman_server.text.mapped import Edit, Mapped, Span, moved
from dragoman_server.text.marks import (
    How,
    Kind,
    Mark,
    beginning_outside,
    chained,
    cut_to,
    disjoint,
    outside,
    text_outside,
    trimmed,
    within,
)
from dragoman_server.text.passage import Attempt, Form, Passage, Piece, Stage, Unit
from dragoman_server.text.seams import seams_between
from dragoman_server.text.words import holds_letter, is_of_word, readings

_SIGNS_BETWEEN = re.compile(r"[-–—/()+ ]{1,4}")


def plain_attempt(passage: Passage, span: Span, ids: tuple[int, ...]) -> Attempt:
    """The attempt at a unit in which nothing must be kept, with its tokens."""
    form = Form(text=Mapped.of(passage.tokenizer_text).part(span), ids=ids)
    return Attempt(stage=Stage.FIRST, pieces=(Piece(span=span, forms=(form,)),))


def first_attempt(passage: Passage, unit: Unit) -> Attempt:
    """The first attempt at any other unit, not tokenized yet."""
    return _masked(passage, unit, Stage.FIRST, ()) or _apart(passage, unit, unit.span)


def ask_again(passage: Passage, unit: Unit) -> Unit:
    """The unit, no answer to which would do, with its next attempt. `lost` of it are numbers and elements."""
    found = _masked(passage, unit, Stage.AGAIN, unit.lost) if unit.attempt.stage is Stage.FIRST else None
    attempt = tokenized(found or _apart(passage, unit, unit.span), passage.bundle)
    return replace(unit, attempt=attempt, first=unit.first if attempt.contents else None)


def tokenized(attempt: Attempt, bundle: Bundle, known: Sequence[int] | None = None) -> Attempt:
    """An attempt with source tokens, as many as the model takes; `known` are those of what is shown first."""
    pieces = []
    for piece in attempt.pieces:
        ids = [known] if known is not None else []
        if len(piece.forms) > len(ids):
            ids += bundle.source_tokenizer.encode_ids([form.text.text for form in piece.forms[len(ids) :]])
        forms = tuple(
            Form(text=form.text, masks=form.masks, ids=with_end(tokens, bundle))
            for form, tokens in zip(piece.forms, ids, strict=True)
        )
        pieces.append(replace(piece, forms=forms))
    return replace(attempt, pieces=tuple(pieces))


def with_end(tokens: Sequence[int], bundle: Bundle) -> tuple[int, ...]:
    """The source tokens, as many as the model takes, with the end of the sentence; none where there are
    none."""
    manifest = bundle.manifest
    end = (manifest.source_ids.eos,) if manifest.source_end else ()
    return (*tokens[: manifest.decoding.max_source_tokens - len(end)], *end) if tokens else ()


def _masked(passage: Passage, unit: Unit, stage: Stage, lost: Sequence[Mark]) -> Attempt | None:
    """The whole unit with masks; None where there are not enough for all."""
    marks = tuple(mark for mark in unit.marks if mark.kind is not Kind.NUMBER)
    if lost:
        marks = disjoint((*marks, *_put_back(passage, unit, lost)))
    tags: Sequence[Mark] = unit.tags
    missing = set(lost)
    elements = [element for element in _innermost(tags) if element in missing]
    if elements:
        marks = tuple(sorted((*beginning_outside(elements, marks), *elements), key=lambda mark: mark.span))
        missing.intersection_update(elements)
        tags = [tag for tag in tags if tag not in missing]
    hidden = {How.MASK, How.WRAP} if stage is Stage.FIRST else {How.MASK, How.WRAP, How.CHECK}
    masked = [mark for mark in marks if mark.how in hidden]
    text = passage.source.text
    texts, sentence = [text[slice(*mark.span)] for mark in masked], text[slice(*unit.span)]
    # The first attempt had the first choice of the same masks.
    is_tried = all(mark.how is How.MASK for mark in masked)
    variants = range(1) if stage is Stage.FIRST or not masked else range(int(is_tried), NUM_VARIANTS)
    # What shows nothing to the model are brackets, which stand around words as tags do then.
    pairs = [] if stage is Stage.FIRST else [mark for mark in marks if mark.how is How.PAIR]
    if stage is not Stage.FIRST and not (masked or pairs):
        # It would be the first one again.
        return None
    if pairs and not has_words_outside(text[: unit.span[1]], matched(pairs), unit.span[0]):
        # "Yes", "no": each is a sentence.
        return None
    pieces = [
        _piece(
            passage,
            unit,
            unit.span,
            marks,
            tags,
            dict.fromkeys(pairs, "") | dict(zip(masked, words, strict=True)),
        )
        for variant in variants
        if (words := masks_for(masked, texts, sentence, variant=variant)) is not None
    ]
    if not pieces:
        return None
    forms = tuple(form for piece in pieces for form in piece.forms)
    contents = tuple((element, _apart(passage, unit, element.span)) for element in elements)
    return Attempt(
        stage=stage,
        pieces=(
            replace(pieces[0], forms=forms),
            *(piece for _, within in contents for piece in within.pieces),
        ),
        contents=contents,
    )


def _innermost(tags: Sequence[Mark]) -> Iterator[Mark]:
    """The elements with both tags that no other tag stands within."""
    ordered = sorted(tags, key=lambda tag: (tag.span[0], -tag.span[1]))
    for tag, following in zip_longest(ordered, ordered[1:]):
        is_whole = tag.kind is Kind.ELEMENT and tag.output is not None and tag.closing is not None
        if is_whole and (following is None or following.span[1] > tag.span[1]):
            yield tag


def _apart(passage: Passage, unit: Unit, whole: Span) -> Attempt:
    """The unit, or a part of it, cut at all that must be kept."""
    text, source = passage.source.text, passage.source
    marks = within(unit.marks, whole)
    inserted = [mark for mark in marks if mark.is_inserted]
    others = [mark for mark in marks if not mark.is_inserted]
    spans = [
        part
        for between in outside(whole, sorted([*(mark.span for mark in others), *_edges(text, unit, whole)]))
        if (part := _words(text, between, unit.span, inserted))
        and holds_letter(text_outside(text, part, unit.marks))
    ]
    seams = seams_between(*passage.languages, is_markup=passage.is_markup)
    if any(text[mark.span[0]].isspace() or text[mark.span[1] - 1].isspace() for mark in others):
        # What is kept has spaces of its own.
        seams = None
    first, last = source.back(whole)
    edges = [first, *(place for span in spans for place in source.back(span)), last]
    bounds = [whole[0], *(place for span in spans for place in span), whole[1]]
    gaps = tuple(
        passage.written(
            (edges[rank], edges[rank + 1]),
            within(marks, (bounds[rank], bounds[rank + 1])),
            rewrite=seams.write if seams else None,
        )
        for rank in range(0, len(edges), 2)
    )
    pieces = tuple(
        replace(_piece(passage, unit, span, inserted, tags, {}), is_part=span != unit.span)
        for span, tags in zip(spans, _tags_by_part(unit.tags, spans), strict=True)
    )
    return Attempt(stage=Stage.APART, pieces=pieces, gaps=gaps, seams=seams)


def _edges(text: str, unit: Unit, whole: Span) -> Iterator[Span]:
    """The places strictly inside of a span where elements begin and end that hold a word."""
    for tag in unit.tags:
        if tag.kind is Kind.ELEMENT and any(map(str.isalnum, text[slice(*tag.span)])):
            yield from ((place, place) for place in tag.span if whole[0] < place < whole[1])


def _words(text: str, span: Span, unit: Span, inserted: Sequence[Mark]) -> Span | None:
    """A part of a unit without the punctuation at its ends, but for that at the unit's own ends."""
    inserted = within(inserted, span)
    found = trimmed(text, span, inserted)
    if found is None:
        return None
    start, end = found
    starting = dict(mark.span for mark in inserted)
    ending = {last: first for first, last in starting.items()}
    while start < end and start > unit[0] and (start in starting or not text[start].isalnum()):
        start = starting.get(start, start + 1)
    while start < end < unit[1] and (end in ending or not is_of_word(text[end - 1])):
        end = ending.get(end, end - 1)
    return (start, end) if start < end else None


def _tags_by_part(tags: Sequence[Mark], spans: Sequence[Span]) -> list[list[Mark]]:
    """The tags strictly inside of each of the spans, which are in order and apart."""
    starts = [start for start, _ in spans]
    found: list[list[Mark]] = [[] for _ in spans]
    for tag in tags:
        places = [(bisect_left(starts, place) - 1, place) for place in tag.span]
        for rank in {rank for rank, place in places if rank >= 0 and place < spans[rank][1]}:
            found[rank].append(tag)
    return found


def _put_back(passage: Passage, unit: Unit, lost: Sequence[Mark]) -> list[Mark]:
    """The marks that are masked for lost numbers.

    Numbers with nothing but signs between them are one, such as "8-10" and the parts of a telephone number.
    """
    text = passage.source.text

    def belong(before: Mark, mark: Mark) -> bool:
        is_crossed = passage.is_crossed((before.span[0], mark.span[1]))
        return not is_crossed and bool(_SIGNS_BETWEEN.fullmatch(text[before.span[1] : mark.span[0]]))

    chains = chained((mark for mark in unit.marks if mark.kind is Kind.NUMBER), belong)
    return [_as_one(passage, chain) for chain in chains if not set(lost).isdisjoint(chain)]


def _as_one(passage: Passage, chain: Sequence[Mark]) -> Mark:
    first, *others = chain
    end, written = first.span[1], passage.output_of(first)
    for mark in others:
        written += passage.source.text[end : mark.span[0]] + passage.output_of(mark)
        end = mark.span[1]
    return replace(first, span=(first.span[0], end), output=written)


def _piece(
    passage: Passage,
    unit: Unit,
    span: Span,
    marks: Sequence[Mark],
    tags: Sequence[Mark],
    words: Mapping[Mark, str],
) -> Piece:
    """A span of a unit, where the marks that have one of the `words` are masked by it."""
    marks = within(marks, span)
    form = _form(passage.tokenizer_text, span, marks, words)
    cut = [*cut_to(tags, span), *_brackets(unit, [mark for mark in marks if words.get(mark) == ""])]
    return Piece(
        span=span,
        forms=_in_small_letters(unit, form) if unit.small_letters else (form,),
        inserted=(
            *(mark for mark in marks if mark.is_inserted),
            *(tag for tag in cut if tag.kind is Kind.TAG),
        ),
        elements=tuple(tag for tag in cut if tag.kind is Kind.ELEMENT),
    )


def _brackets(unit: Unit, marks: Sequence[Mark]) -> Iterator[Mark]:
    """Brackets as elements, which stand around what they held."""
    for opening, closing in matched(marks):
        if closing and closing.span[1] == unit.span[1]:
            # The mark of the sentence's end is within them.
            yield Mark(span=(unit.span[1], unit.span[1]), kind=Kind.TAG, output=closing.output)
            closing = None
        if not (opening or closing):
            continue
        yield Mark(
            span=(
                opening.span[0] if opening else unit.span[0],
                closing.span[1] if closing else unit.span[1],
            ),
            kind=Kind.ELEMENT,
            output=opening.output if opening else None,
            closing=closing.output if closing else None,
        )


def _form(text: str, span: Span, marks: Sequence[Mark], words: Mapping[Mark, str]) -> Form:
    """The part of a text at a span, with masks, and without what is inserted again.

    A space goes with that where one stands on both of its sides.
    """
    start, end = span
    edits: list[Edit] = []
    masks = []
    starts = {mark.span[0] for mark in marks}
    written, position = "", start
    for mark in marks:
        first, last = mark.span
        written = text[first - 1] if position < first else written
        behind = text[last : min(last + 1, end)]
        position = last
        if mark.is_inserted or words.get(mark) == "":
            before = written or " "
            if before.isspace() and behind.isspace() and last not in starts:
                position = last + 1
            elif text[first:last].isspace() and not before.isspace() and behind and not behind.isspace():
                # The words on its sides are two: a no-break space is set in where the answer has its space.
                written = text[last - 1]
                continue
            edits.append((moved((first, position), -start), ""))
        elif mark in words:
            # It is a word of its own, whatever it touches.
            word = f"{' ' * written.isalnum()}{words[mark]}{' ' * behind.isalnum()}"
            masks.append((words[mark], mark))
            edits.append((moved(mark.span, -start), word))
            written = word[-1]
        else:
            written = text[last - 1]
    # The last mark may have white space at its end, which is no part of the unit.
    whole = Mapped.of(text).part((start, max(end, position)))
    return Form(text=whole.edited(edits), masks=tuple(masks))


def _in_small_letters(unit: Unit, form: Form) -> tuple[Form, ...]:
    """The ways to read a text in capitals or in title case, in which masks keep their letters."""
    text, start = form.text, unit.span[0]
    written = "".join(
        unit.small_letters[position - start] if character.isupper() else character
        for character, position in zip(text.text, text.starts, strict=True)
    )
    found = []
    others = readings(text.text) if unit.in_capitals else [text.text]
    for reading in dict.fromkeys((written, *others)):
        spelled = list(reading)
        for _, mark in form.masks:
            first, last = text.onto(mark.span)
            spelled[first:last] = text.text[first:last]
        found.append(replace(form, text=text.spelled("".join(spelled))))
    return tuple(found)
