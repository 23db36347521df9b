"""Where tags and what floats stand in a translation: around and beside the words that theirs became.

Positions count code points of what the model was shown and of what it answered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman_server.text.alignment import Alignment
from dragoman_server.text.cleaning import Span
from dragoman_server.text.markup.element import Element
from dragoman_server.text.words import words

MAX_DEPTH = 100
"""How deep elements may be within each other in one sentence, of those that stand around different words."""


@dataclass(frozen=True, kw_only=True)
class Floating:
    """A text that is set into a translation at a position, and whether spaces stood around it."""

    position: int
    text: str
    has_space_before: bool = False
    has_space_behind: bool = False
    replaces_space: bool = False
    keeps_order: bool = False
    """Whether it stands behind whatever else keeps its order and stood before it."""


@dataclass(frozen=True)
class _Answer:
    """The words of an answer and, for each, the word of the source that it comes from most."""

    words: Sequence[Span]
    origins: Sequence[Span | None]
    has_letters: Sequence[bool]
    length: int


@dataclass(frozen=True)
class Linked:
    """The links of a text and its translation, and the ranges of the tokens that both are made of."""

    links: Sequence[Alignment] = ()
    source_pieces: Sequence[Span] = ()
    target_pieces: Sequence[Span] = ()


def place(
    floating: Sequence[Floating],
    elements: Sequence[Element],
    shown: str,
    answer: str,
    linked: Linked,
) -> list[Floating]:
    """All tags and floating texts with their positions in the answer, in order."""
    nearest: dict[Span, Span] = {}
    for link in linked.links:
        nearest.setdefault(link.target, link.source)
    found = list(words(answer, linked.target_pieces))
    target = _Answer(
        words=found,
        origins=[nearest.get(word) for word in found],
        has_letters=[any(map(str.isalnum, answer[slice(*word)])) for word in found],
        length=len(answer),
    )
    tags = list(_lay_out(_nested(elements), target, (0, len(found)), (0, len(answer))))
    placed = [*tags]
    source_words = list(words(shown, linked.source_pieces))
    reached = 0
    for item in floating:
        position = _beside(item, source_words, shown, target)
        if item.replaces_space and answer[:position].endswith(" "):
            position -= 1
        if item.keeps_order:
            position = reached = max(position, reached)
        moved = Floating(
            position=position,
            text=item.text,
            has_space_before=item.has_space_before,
            has_space_behind=item.has_space_behind,
            replaces_space=item.replaces_space,
        )
        placed.append(moved)
    # Stable: tags at one place stay in their order, which nests.
    return sorted(placed, key=lambda item: item.position)


def _beside(item: Floating, sources: Sequence[Span], shown: str, target: _Answer) -> int:
    left = [word for word in sources if word[1] <= item.position]
    right = [word for word in sources if word[0] >= item.position]
    if not right:
        return target.length
    if not left:
        return 0
    follows = not item.has_space_before and item.has_space_behind
    for source, is_left in (
        ((left[-1], True), (right[0], False)) if follows else ((right[0], False), (left[-1], True))
    ):
        came = [word for word, origin in zip(target.words, target.origins, strict=True) if origin == source]
        if came:
            return max(word[1] for word in came) if is_left else min(word[0] for word in came)
    before = [
        word[1]
        for word, origin in zip(target.words, target.origins, strict=True)
        if origin and origin[1] <= item.position
    ]
    return max(before, default=target.length)


@dataclass(frozen=True)
class _Node:
    element: Element
    children: "list[_Node]"


def _nested(elements: Sequence[Element]) -> list[_Node]:
    """The elements as a forest; an element that does not nest is cut off at its parent's end when it is
    placed."""
    roots: list[_Node] = []
    path: list[_Node] = []
    for element in sorted(elements, key=lambda other: (other.start, -other.end)):
        node = _Node(element, [])
        while path and not (path[-1].element.start <= element.start and element.end <= path[-1].element.end):
            path.pop()
        # Beyond that one stands beside the other: each is there, and they nest as well.
        del path[MAX_DEPTH:]
        (path[-1].children if path else roots).append(node)
        path.append(node)
    return roots


def _lay_out(nodes: Sequence[_Node], target: _Answer, bounds: Span, edges: Span) -> Iterator[Floating]:
    """The tags of siblings within a range of the answer's words, in order.

    `edges` are the positions that an empty element at the range's ends stands at.
    """
    first, last = bounds
    hulls = []
    for rank, node in enumerate(nodes):
        element = node.element
        came = [place for place in range(first, last) if _comes_from(target, place, element)]
        start, end = (came[0], came[-1] + 1) if came else (None, None)
        if element.opening is None:
            start, end = first, end if end is not None else first
        if element.closing is None:
            start, end = start if start is not None else last, last
        hulls.append((start, end, rank, node))
    # Of elements that began before the unit, the inner one ends first.
    known = sorted(
        (hull for hull in hulls if hull[0] is not None),
        key=lambda hull: (hull[0], hull[2] if hull[3].element.opening is not None else -hull[2]),
    )
    # An element that nothing comes from stands behind the sibling before it.
    for hull in hulls:
        if hull[0] is None:
            place = next(
                (index + 1 for index, other in enumerate(known) if other[2] == hull[2] - 1),
                0 if hull[2] == 0 else len(known),
            )
            known.insert(place, hull)
    free = first
    position = edges[0]
    for start, end, _, node in known:
        begin = free if start is None else max(start, free)
        finish = begin if end is None else max(begin, min(end, last))
        if begin < finish:
            opens, closes = target.words[begin][0], target.words[finish - 1][1]
        else:
            opens = closes = (
                position if begin == first or begin > last else max(position, target.words[begin - 1][1])
            )
        opens = max(opens, position)
        closes = max(closes, opens)
        if node.element.opening is not None:
            yield Floating(position=opens, text=node.element.opening)
        yield from _lay_out(node.children, target, (begin, finish), (opens, closes))
        if node.element.closing is not None:
            yield Floating(position=closes, text=node.element.closing)
        free, position = finish, closes


def _comes_from(target: _Answer, position: int, element: Element) -> bool:
    origin = target.origins[position]
    return (
        origin is not None
        and target.has_letters[position]
        and element.start < origin[1]
        and origin[0] < element.end
    )
