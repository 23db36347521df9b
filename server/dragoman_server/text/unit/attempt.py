"""Attempts to translate a unit, one after the other until one keeps all that must be kept.

first   spans that are protected are shown to the model as masks
again   so are terms, and numbers that were lost, with several choices of masks side by side
around  the unit is cut at all of them, and what is between is translated on its own: always works
"""

import enum
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman_server.text.cleaning import Span
from dragoman_server.text.markup.element import Element, elements_within
from dragoman_server.text.protection.masks import NUM_VARIANTS, masks_for
from dragoman_server.text.protection.numbers import in_notation, numbers_in
from dragoman_server.text.protection.protected import Protected, SpanKind, disjoint, within
from dragoman_server.text.segmentation import holds_letter
from dragoman_server.text.source import Source
from dragoman_server.text.unit.capitals import is_in_capitals, readings
from dragoman_server.text.unit.placing import Floating
from dragoman_server.text.unit.rendering import Rendered, outside, render
from dragoman_server.text.unit.seams import Seams, seams_between
from dragoman_server.text.words import is_of_word

_PERCENT = re.compile(r"[ \u00a0\u202f]?[%‰](?![\w({])")
_SIGNS_BETWEEN = re.compile(r"[-–—/()+ ]{1,4}")


class Stage(enum.IntEnum):
    """How hard it is tried; see above."""

    FIRST = 0
    AGAIN = 1
    AROUND = 2


@dataclass(frozen=True, kw_only=True)
class Task:
    """A unit and what must be kept of it. Spans count code points of the cleaned text."""

    span: Span
    items: tuple[Protected, ...] = ()
    """Protected spans and terms, in order."""
    numbers: tuple[Protected, ...] = ()
    """Numbers whose values are to be kept, none of them in an item."""
    elements: tuple[Element, ...] = ()
    """Inline elements with a tag inside of it."""
    floating: tuple[tuple[int, str], ...] = ()
    """Positions inside of it with what stands there: comments, and tags of empty elements."""
    in_capitals: bool = False
    """Whether it is translated as if in small letters."""
    small_letters: str = ""
    """Then, how the vocabulary has it in these: as long as it."""
    seams: Seams | None = None
    """Where its language writes spaces and the translation's does not, or the other way round."""

    @property
    def is_plain(self) -> bool:
        """Whether nothing is special about it."""
        return not (self.items or self.numbers or self.elements or self.floating or self.in_capitals)

    @property
    def is_checked(self) -> bool:
        """Whether an answer may not do."""
        return bool(self.numbers) or (bool(self.items) and any(not item.floats for item in self.items))


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A span that is searched on its own: a unit, or a part of one."""

    span: Span
    shown: tuple[Rendered, ...]
    """The forms in which the model is shown the span."""
    floating: tuple[Floating, ...] = ()
    """Positions, as those of elements, count code points of the cleaned text."""
    elements: tuple[Element, ...] = ()
    is_part: bool = False


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One way to translate a unit."""

    stage: Stage
    pieces: tuple[Piece, ...]
    gaps: tuple[str, ...] = ("", "")
    """The texts before, between and behind the pieces."""
    seams: Seams | None = None
    """What belongs between these and those."""


def make_task(
    source: Source, span: Span, items: Sequence[Protected], *, is_automatic: bool, languages: tuple[str, str]
) -> Task:
    """The task of a unit: the spans to keep. With `is_automatic`, its numbers' values too, and it may be
    in capitals."""
    text = source.cleaned.text
    start, end = span
    numbers: tuple[Protected, ...] = ()
    in_capitals = False
    if is_automatic:
        unit = text[start:end]
        if any(map(str.isnumeric, unit)):
            numbers = tuple(_numbers(source, span, items, languages))
        if unit.isupper() or items:
            in_capitals = is_in_capitals(
                " ".join(
                    text[a:b]
                    for a, b in outside(span, [item for item in items if item.kind is not SpanKind.TERM])
                )
            )
    elements: tuple[Element, ...] = ()
    floating: tuple[tuple[int, str], ...] = ()
    if source.is_markup:
        elements = tuple(elements_within(source.elements_in(span), span))
        floating = tuple((insertion.position, insertion.text) for insertion in source.insertions_in(span))
    return Task(
        span=span,
        items=tuple(items),
        numbers=numbers,
        elements=elements,
        floating=floating,
        in_capitals=in_capitals,
        seams=seams_between(*languages),
    )


def first_attempt(source: Source, task: Task) -> Attempt | None:
    """The first attempt; None where there are too many spans for masks, and `around` is the only one."""
    if task.is_plain:
        rendered = render(source.cleaned.tokenizer_text, task.span, (), {})
        return Attempt(stage=Stage.FIRST, pieces=(Piece(span=task.span, shown=(rendered,)),))
    return _masked(source, task, Stage.FIRST, ())


def next_attempt(source: Source, task: Task, tried: Stage, lost: Sequence[Protected]) -> Attempt:
    """The attempt after one that failed. `lost` are the numbers that it lost."""
    found = _masked(source, task, Stage.AGAIN, lost) if tried is Stage.FIRST else None
    return found or around(source, task)


def around(source: Source, task: Task) -> Attempt:
    """The unit cut at all that must be kept."""
    text = source.cleaned.text
    items = disjoint((*task.items, *task.numbers))
    hard = [item for item in items if not item.floats]
    floats = [item for item in items if item.floats]
    spans = [
        trimmed
        for a, b in outside(task.span, hard)
        if (trimmed := _words(text, (a, b), task.span, floats))
        and holds_letter(text_outside(text, trimmed, items))
    ]
    # What is kept may have spaces at its ends.
    seams = (
        None
        if any(text[a].isspace() or text[b - 1].isspace() for a, b in [item.span for item in hard])
        else task.seams and replace(task.seams, is_markup=source.is_markup)
    )
    cleaned = source.cleaned
    edges = [cleaned.starts[task.span[0]]]
    for start, end in spans:
        edges += [cleaned.starts[start], cleaned.ends[end - 1]]
    edges.append(cleaned.ends[task.span[1] - 1])
    bounds = [task.span[0], *(boundary for span in spans for boundary in span), task.span[1]]
    gaps = tuple(
        source.written(
            edges[rank],
            edges[rank + 1],
            within(items, (bounds[rank], bounds[rank + 1])),
            rewrite=seams.write if seams else None,
        )
        for rank in range(0, len(edges), 2)
    )
    pieces = tuple(
        replace(_piece(source, of_span, span, floats, {}), is_part=span != task.span)
        for span, of_span in zip(spans, _parts_of(task, spans), strict=True)
    )
    return Attempt(stage=Stage.AROUND, pieces=pieces, gaps=gaps, seams=seams)


def _parts_of(task: Task, spans: Sequence[Span]) -> list[Task]:
    """For each of the spans of a unit, which are in order and apart, the task with the tags inside of it."""
    starts = [start for start, _ in spans]
    elements: list[list[Element]] = [[] for _ in spans]
    floating: list[list[tuple[int, str]]] = [[] for _ in spans]

    def inside(*positions: int) -> set[int]:
        """The ranks of the spans that have one of the positions strictly inside."""
        ranks = [(bisect_left(starts, position) - 1, position) for position in positions]
        return {rank for rank, position in ranks if rank >= 0 and position < spans[rank][1]}

    for element in task.elements:
        for rank in inside(element.start, element.end):
            elements[rank].append(element)
    for tag in task.floating:
        for rank in inside(tag[0]):
            floating[rank].append(tag)
    return [
        replace(task, elements=tuple(of_span), floating=tuple(tags))
        for of_span, tags in zip(elements, floating, strict=True)
    ]


def _words(text: str, span: Span, unit: Span, floats: Sequence[Protected]) -> Span | None:
    """A part of a unit without the punctuation at its ends, which is not the unit's own: it stays where it
    is."""
    floats = within(floats, span)
    trimmed = trim(text, span, floats)
    if trimmed is None:
        return None
    start, end = trimmed
    starting = dict(item.span for item in floats)
    ending = {stop: first for first, stop in starting.items()}
    while start < end and start > unit[0] and (start in starting or not text[start].isalnum()):
        start = starting.get(start, start + 1)
    while start < end < unit[1] and (end in ending or not is_of_word(text[end - 1])):
        end = ending.get(end, end - 1)
    return (start, end) if start < end else None


def _masked(source: Source, task: Task, stage: Stage, lost: Sequence[Protected]) -> Attempt | None:
    """None where there are no masks for all."""
    is_first = stage is Stage.FIRST
    items = disjoint((*task.items, *_put_back(source, task, lost))) if lost else task.items
    masked = [item for item in items if not item.floats and not (is_first and item.kind is SpanKind.TERM)]
    text = source.cleaned.text
    texts, sentence = [text[slice(*item.span)] for item in masked], text[slice(*task.span)]
    # Were the same masks tried before?
    is_same = len(masked) == sum(item.kind is not SpanKind.TERM and not item.floats for item in task.items)
    variants = range(1) if is_first else range(int(is_same), NUM_VARIANTS)
    pieces = [
        _piece(source, task, task.span, items, dict(zip(masked, words, strict=True)))
        for variant in variants
        if (words := masks_for(masked, texts, sentence, variant=variant)) is not None
    ]
    if not pieces:
        return None
    return Attempt(stage=stage, pieces=(_side_by_side(pieces),))


def _put_back(source: Source, task: Task, lost: Sequence[Protected]) -> list[Protected]:
    """The spans that are masked for lost numbers. Numbers that only signs part are one, such as "8-10" and
    the parts of a telephone number."""
    chains: list[list[Protected]] = []
    for item in task.numbers:
        before = chains[-1][-1] if chains else item
        between = source.cleaned.text[before.span[1] : item.span[0]]
        is_crossed = source.is_crossed((before.span[0], item.span[1]))
        if chains and _SIGNS_BETWEEN.fullmatch(between) and not is_crossed:
            chains[-1].append(item)
        else:
            chains.append([item])
    return [
        _with_percent(source, _joined(source, chain)) for chain in chains if not set(lost).isdisjoint(chain)
    ]


def _joined(source: Source, chain: Sequence[Protected]) -> Protected:
    first, *others = chain
    end, written = first.span[1], source.output_of(first)
    for item in others:
        written += source.cleaned.text[end : item.span[0]] + source.output_of(item)
        end = item.span[1]
    return replace(first, span=(first.span[0], end), output=written)


def _with_percent(source: Source, number: Protected) -> Protected:
    """A number with the sign behind it that makes a hundredth or a thousandth of it."""
    start, end = number.span
    sign = _PERCENT.match(source.cleaned.text, end)
    if sign is None or number.output is None or source.is_crossed((start, sign.end())):
        return number
    return replace(number, span=(start, sign.end()), output=number.output + sign[0])


def _side_by_side(pieces: Sequence[Piece]) -> Piece:
    """Joins pieces to one that shows all they show."""
    return replace(pieces[0], shown=tuple(rendered for piece in pieces for rendered in piece.shown))


def _piece(
    source: Source, task: Task, span: Span, items: Sequence[Protected], words: dict[Protected, str]
) -> Piece:
    start, end = span
    text = source.cleaned.tokenizer_text
    items = within(items, span)
    rendered = render(text, span, items, words)
    shown: tuple[Rendered, ...] = (rendered,)
    if task.in_capitals:
        written = _in_small_letters(task, rendered)
        ways = dict.fromkeys((written, *readings(rendered.text)))
        shown = tuple(rendered.with_text(_with_masks(way, rendered)) for way in ways)
    floating = [
        Floating(
            position=item.span[0],
            text=source.output_of(item),
            has_space_before=text[item.span[0] - 1 : item.span[0]].isspace() or item.span[0] == start,
            has_space_behind=text[item.span[1] : item.span[1] + 1].isspace(),
            replaces_space=text[slice(*item.span)].isspace(),
        )
        for item in items
        if item.floats
    ]
    floating += [
        Floating(position=position, text=tag, keeps_order=True)
        for position, tag in task.floating
        if start < position < end
    ]
    elements = elements_within(task.elements, span)
    return Piece(span=span, shown=shown, floating=tuple(floating), elements=tuple(elements))


def _in_small_letters(task: Task, rendered: Rendered) -> str:
    """The text that is shown, with the small letters of the task."""
    start = task.span[0]
    return "".join(
        task.small_letters[position - start] if task.small_letters and character.isupper() else character
        for character, position in zip(rendered.text, rendered.starts, strict=True)
    )


def _with_masks(reading: str, rendered: Rendered) -> str:
    """Masks keep their letters."""
    if not rendered.masks:
        return reading
    parts = []
    end = 0
    for mask in rendered.masks:
        parts += [reading[end : mask.position], mask.word]
        end = mask.position + len(mask.word)
    return "".join((*parts, reading[end:]))


def _numbers(
    source: Source, span: Span, items: Sequence[Protected], languages: tuple[str, str]
) -> list[Protected]:
    start, end = span
    starts = [item.span[0] for item in items]
    found = []
    for number in numbers_in(source.cleaned.tokenizer_text[start:end]):
        first, last = start + number.span[0], start + number.span[1]
        rank = bisect_left(starts, last) - 1
        if (rank >= 0 and first < items[rank].span[1]) or source.is_crossed((first, last)):
            continue
        written = in_notation(number.text, source_language=languages[0], target_language=languages[1])
        found.append(Protected(span=(first, last), kind=SpanKind.NUMBER, output=written))
    return found


def trim(text: str, span: Span, items: Sequence[Protected]) -> Span | None:
    """A span without white space and what floats at its ends."""
    start, end = span
    starting = {item.span[0]: item.span[1] for item in items if item.floats}
    ending = {stop: first for first, stop in starting.items()}
    while start < end and (text[start].isspace() or start in starting):
        start = starting.get(start, start + 1)
    while start < end and (text[end - 1].isspace() or end in ending):
        end = ending.get(end, end - 1)
    return (start, end) if start < end else None


def text_outside(text: str, span: Span, items: Sequence[Protected]) -> str:
    """The parts of a span that are in none of the items, which are in order."""
    return " ".join(text[a:b] for a, b in outside(span, within(items, span)))
