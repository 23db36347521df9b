"""An answer of the model as it goes out: masks replaced, and tags and what was left out inserted again.

Tags stand around the words that theirs became, and what was left out next to them.
"""

import html
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

from dragoman_server.text.align.links import Linked
from dragoman_server.text.judge.checking import Found
from dragoman_server.text.mapped import Edit, Mapped, Span
from dragoman_server.text.marks import Kind, Mark
from dragoman_server.text.passage import Passage, Piece, Unit
from dragoman_server.text.words import find_word

MAX_DEPTH = 100
"""How deep elements may be within each other in one sentence, of those that stand around different words."""

MIN_SHARE = 0.1
"""Least share of a word's attention on an element for the tags to stand around it, where no word comes from
the element most."""


@dataclass(frozen=True)
class Insertion:
    """A text that is set into an answer at a position of it, and whether spaces stood on its sides."""

    position: int
    text: str
    opens: int | None = None
    """The place of a start tag's element in the source."""
    has_space_before: bool = False
    has_space_behind: bool = False
    replaces_space: bool = False

    def between(self, before: str, behind: str) -> tuple[str, int]:
        """The text to write between two characters, and how many that follow it takes the place of."""
        if self.replaces_space:
            return self.text, int(behind == " ")
        # A number next to another is not to be a part of it.
        is_number = before.isdigit() and self.text[:1].isdigit()
        space = " " * (is_number or (self.has_space_before and not before.isspace()))
        return f"{space}{self.text}{' ' * (self.has_space_behind and behind.isalnum())}", 0


def written(
    passage: Passage, unit: Unit, answer: str, masks: Sequence[Found], insertions: Sequence[Insertion]
) -> Mapped:
    """What goes out, made of an answer. The insertions are in order, and none stands within a mask."""
    if not (masks or insertions or unit.in_capitals or passage.is_markup):
        return Mapped.of(answer)
    edits: list[Edit] = []
    waiting = deque(insertions)
    starting = {span[0]: (span, mark) for span, mark in masks}
    position, last = 0, " "
    before: Mark | None = None
    while position < len(answer) or waiting:
        following = answer[position : position + 1]
        if waiting and (waiting[0].position <= position or not following):
            text, num_taken = waiting.popleft().between(last, following)
            edits.append(((position, position + num_taken), text))
            position += num_taken
        elif position in starting:
            span, mark = starting[position]
            text = passage.output_of(mark)
            edits.append((span, text))
            before, position = mark, span[1]
        elif following == " " and before and _touch(before, starting.get(position + 1)):
            # A tag stands between the two; the model had a space there.
            text = ""
            edits.append(((position, position + 1), text))
            before, position = None, position + 1
        else:
            before = None
            text = following.upper() if unit.in_capitals else following
            text = html.escape(text, quote=False) if passage.is_markup else text
            if text != following:
                edits.append(((position, position + 1), text))
            position += 1
        last = text[-1:] or last
    return Mapped.of(answer).edited(edits)


def _touch(mark: Mark, found: Found | None) -> bool:
    return found is not None and mark.span[1] == found[1].span[0]


@dataclass(frozen=True)
class _Answer:
    """The words of an answer and, for each, the word of the source that it comes from most."""

    words: Sequence[Span]
    origins: list[Span | None]
    has_letters: Sequence[bool]
    are_words: Sequence[bool]
    """Which of them have letters, and do not stand for what has none."""
    length: int
    linked: Linked
    empty: list[Mark] = field(default_factory=list)
    """The elements that held a word and are around none."""

    def from_word(self, source: Span) -> list[Span]:
        """The words that come from a word of the source."""
        return [word for word, origin in zip(self.words, self.origins, strict=True) if origin == source]

    def claim(self, place: Span, source: Span) -> None:
        """Says that the words at a place of the answer come from a span of the source."""
        for rank, word in enumerate(self.words):
            if place[0] <= word[0] and word[1] <= place[1]:
                self.origins[rank] = source

    def nearest(self, source: Span, ranks: Sequence[int]) -> int | None:
        """The rank of the word, of some of them, that comes from a span of the source most; None where that
        is next to nothing."""
        columns = [
            column
            for column, word in enumerate(self.linked.sources)
            if source[0] < word[1] and word[0] < source[1]
        ]
        ranks = [rank for rank in ranks if self.are_words[rank]]
        shares = self.linked.weight_WV[ranks][:, columns].sum(axis=1)
        return ranks[shares.argmax()] if ranks and shares.max() >= MIN_SHARE else None


def _origins(linked: Linked) -> list[Span | None]:
    """The word of the source that each word of an answer comes from most."""
    if not linked.sources:
        return [None] * len(linked.targets)
    return [
        linked.sources[nearest] if weight_V[nearest] > 0 else None
        for weight_V, nearest in zip(linked.weight_WV, linked.weight_WV.argmax(axis=1), strict=True)
    ]


def place(
    piece: Piece,
    shown: Mapped,
    answer: str,
    masks: Sequence[Found],
    linked: Linked,
    output_of: Callable[[Mark], str],
    contents: Mapping[Mark, str],
) -> tuple[list[Insertion], tuple[Mark, ...]]:
    """All that is inserted into an answer to a piece, in order, and the elements that held a word and are
    around none. `contents` are what is known to be in some elements."""
    text = shown.origin
    # What stands for tags or signs is no word.
    unsaid = [(span, mark) for span, mark in masks if not any(map(str.isalnum, text[slice(*mark.span)]))]
    is_unsaid = {position for (start, end), _ in unsaid for position in range(start, end)}
    has_letters = [any(map(str.isalnum, answer[slice(*word)])) for word in linked.targets]
    target = _Answer(
        words=linked.targets,
        origins=_origins(linked),
        has_letters=has_letters,
        are_words=[
            has and word[0] not in is_unsaid for has, word in zip(has_letters, linked.targets, strict=True)
        ],
        length=len(answer),
        linked=linked,
    )
    is_said = list(map(str.isalnum, shown.text))
    for _, mark in unsaid:
        start, end = map(shown.forth, mark.span)
        is_said[start:end] = [False] * (end - start)
    num_said = list(accumulate(is_said, initial=0))
    nodes = []
    for element in piece.elements:
        start, end = map(shown.forth, element.span)
        nodes.append(_Node(element, (start, end), num_said[end] > num_said[start]))
        if (known := contents.get(element)) and (place := find_word(known, answer)):
            target.claim(place, (start, end))
    placed = list(_lay_out(_nested(nodes), target, (0, len(target.words)), (0, len(answer))))
    reached = 0
    for mark in piece.inserted:
        start, end = mark.span
        item = Insertion(
            0,
            output_of(mark),
            has_space_before=text[start - 1 : start].isspace() or start == piece.span[0],
            has_space_behind=text[end : end + 1].isspace(),
            replaces_space=text[start:end].isspace(),
        )
        follows = not (item.has_space_before or text[end : end + 1].isalnum())
        position = _next_to(shown.forth(start), linked.sources, target, follows=follows)
        if item.replaces_space and answer[:position].endswith(" "):
            position -= 1
        if mark.kind is Kind.TAG:
            # Tags keep their order.
            position = reached = max(position, reached)
        # Behind the tags that stand there, which nest, but for those of elements that begin behind it.
        rank = bisect_right(placed, position, key=lambda other: other.position)
        while rank and placed[rank - 1].position == position and (placed[rank - 1].opens or -1) >= start:
            rank -= 1
        placed.insert(rank, replace(item, position=position))
    return placed, tuple(target.empty)


def _next_to(position: int, sources: Sequence[Span], target: _Answer, *, follows: bool) -> int:
    """The place in the answer next to what became of the words around a position of the source: of the one
    before it, if it `follows` that, else rather of the one behind it."""
    left = [word for word in sources if word[1] <= position]
    right = [word for word in sources if word[0] >= position]
    if not right:
        return target.length
    if not left:
        return 0
    for source in (left[-1], right[0]) if follows else (right[0], left[-1]):
        if came := target.from_word(source):
            is_left = source == left[-1]
            return max(word[1] for word in came) if is_left else min(word[0] for word in came)
    before = [
        word[1]
        for word, origin in zip(target.words, target.origins, strict=True)
        if origin and origin[1] <= position
    ]
    return max(before, default=target.length)


@dataclass
class _Node:
    element: Mark
    span: Span
    """Its span in what the model was shown."""
    has_words: bool
    children: "list[_Node]" = field(default_factory=list)


class _Hull(NamedTuple):
    """The range of the answer's words that come from an element."""

    node: _Node
    rank: int
    """The element's rank among its siblings."""
    first: int
    end: int

    @property
    def order(self) -> tuple[int, int]:
        """The order of elements; of those that began before the unit, the inner one ends first."""
        return self.first, self.rank if self.node.element.output is not None else -self.rank


def _nested(nodes: Sequence[_Node]) -> list[_Node]:
    """The elements as a forest; one that does not nest is cut off at its parent's end when it is placed."""
    roots: list[_Node] = []
    path: list[_Node] = []
    for node in sorted(nodes, key=lambda other: (other.span[0], -other.span[1])):
        start, end = node.span
        while path and not (path[-1].span[0] <= start and end <= path[-1].span[1]):
            path.pop()
        # Beyond that one stands next to the other: each is there, and they nest as well.
        del path[MAX_DEPTH:]
        (path[-1].children if path else roots).append(node)
        path.append(node)
    return roots


def _hulls(nodes: Sequence[_Node], target: _Answer, bounds: Span) -> list[_Hull]:
    """The hulls of siblings within a range of the answer's words, in the order that they are written in."""
    first, last = bounds
    owners: dict[int, int] = {}
    for rank, node in enumerate(nodes):
        owners |= {place: rank for place in range(first, last) if _comes_from(target, place, node)}
    around_words = {rank for place, rank in owners.items() if target.are_words[place]}
    for rank in sorted({rank for rank, node in enumerate(nodes) if node.has_words} - around_words):
        place = target.nearest(
            nodes[rank].span, [place for place in range(first, last) if place not in owners]
        )
        if place is not None:
            owners = {other: owner for other, owner in owners.items() if owner != rank} | {place: rank}
    known, empty = [], []
    longest = _longest_runs(owners)
    for rank, node in enumerate(nodes):
        element = node.element
        came = longest.get(rank)
        begin = first if element.output is None else came[0] if came else None
        end = last if element.closing is None else came[1] if came else None
        if begin is None and end is None:
            empty.append(_Hull(node, rank, -1, -1))
        else:
            # An element that is open on one side, and that nothing comes from, is at that side.
            known.append(_Hull(node, rank, last if begin is None else begin, first if end is None else end))
    known.sort(key=lambda hull: hull.order)
    # An element that nothing comes from stands behind the sibling before it.
    behind = {hull.rank: hull for hull in empty}
    found: list[_Hull] = []
    for rank, hulls in ((-1, []), *((hull.rank, [hull]) for hull in known)):
        found += hulls
        while (rank := rank + 1) in behind:
            found.append(behind[rank])
    return found


def _longest_runs(owners: Mapping[int, int]) -> dict[int, Span]:
    """The longest range of words of each element, from its first to its last, with no word of another's."""
    longest: dict[int, Span] = {}
    start, before = 0, -1
    for place in sorted(owners):
        rank = owners[place]
        if rank != before:
            start, before = place, rank
        first, end = longest.get(rank, (0, 0))
        if place + 1 - start > end - first:
            longest[rank] = start, place + 1
    return longest


def _lay_out(nodes: Sequence[_Node], target: _Answer, bounds: Span, edges: Span) -> Iterator[Insertion]:
    """The tags of siblings within a range of the answer's words, in order.

    `edges` are the positions that an empty element at the range's ends stands at.
    """
    free, last = bounds
    position = edges[0]
    for node, _, first, end in _hulls(nodes, target, bounds):
        begin = max(first, free)
        finish = max(begin, min(end, last))
        if begin < finish:
            opens, closes = target.words[begin][0], target.words[finish - 1][1]
        else:
            opens = closes = (
                position if begin == bounds[0] or begin > last else max(position, target.words[begin - 1][1])
            )
        opens = max(opens, position)
        closes = max(closes, opens)
        if node.has_words and not any(target.are_words[begin:finish]):
            target.empty.append(node.element)
        if node.element.output is not None:
            yield Insertion(opens, node.element.output, opens=node.element.span[0])
        yield from _lay_out(node.children, target, (begin, finish), (opens, closes))
        if node.element.closing is not None:
            yield Insertion(closes, node.element.closing)
        free, position = finish, closes


def _comes_from(target: _Answer, position: int, node: _Node) -> bool:
    origin = target.origins[position]
    return (
        origin is not None
        and target.has_letters[position]
        and node.span[0] < origin[1]
        and origin[0] < node.span[1]
    )
