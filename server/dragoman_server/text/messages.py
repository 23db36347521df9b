"""Messages: texts with choices of ICU's MessageFormat or of Fluent, opened into texts without, and closed.

A sentence with a choice becomes one whole sentence for each of the choice's texts, with what stands around it
in each: words agree, and the order is the target language's. "You have {n, plural, one {# file} other
{# files}}." is translated as "You have # file." and "You have # files.", and the choice is around all of it
then. Where a sentence is not to be there several times, for its tags or its length, the choice is a word of
it, and its texts are translated each by itself.

While a text of a message is translated, signs stand for all that is no text: arguments, what is quoted, and
choices. Pure; must not know what translates the texts.
"""

import functools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from dragoman_server.text.ask.masks import is_quantity
from dragoman_server.text.choices import TOKENS, Branch, Choice, Syntax, parse, quotes
from dragoman_server.text.cut.segment import segment
from dragoman_server.text.mapped import Edit, Mapped, Span, moved
from dragoman_server.text.marks import Kind, Mark, outside
from dragoman_server.text.passage import Passage
from dragoman_server.text.translated import (
    Alignment,
    SentenceConfidence,
    TranslatedHypothesis,
    TranslatedText,
    TranslationWarning,
    WarningKind,
    whole_of,
    whole_text,
)

MAX_BRANCHES = 64
"""Texts that a sentence's choices may come to, with those within others; a choice beyond stays as it is."""
MAX_CHARACTERS = 10_000
"""A longer sentence is not repeated, and a longer choice stays as it is."""
_FIRST_SIGNS = {Kind.PLACEHOLDER: 0xF0000, Kind.QUANTITY: 0xF8000, Kind.BREAK: 0x100000}
"""The first sign of each kind, as `patterns.toml` has them."""
_MAX_SIGNS = 0x7000
_SYNTAX = re.compile("[{}'#]")
_SIGNS = "\U000f0000-\U0010fffd"
_OBJECT = "\ufffc"
"""Stands in a text with markup for an element that is not translated."""
_APART = re.compile(rf"(?<![{_SIGNS}])'(?=[\w\s.,;:!?])")
_MARKUP = r"(?P<markup><[^<>]*>|&#?\w{1,40};)"


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What holds for a text because it is of a message."""

    syntax: Syntax
    has_pairs: bool
    """Whether ICU's apostrophes are written as two everywhere."""
    number: str = ""
    """The argument that "#" stands for, within a plural choice."""
    has_offset: bool = False
    """Whether "#" is that argument less an offset, which can't be said otherwise."""
    max_branches: int = MAX_BRANCHES


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """A text of a choice, with what of its sentence stands around it."""

    text: Mapped
    """Its origin is the text that the choice is in."""
    scope: Scope


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A text, and apart from it all that is no text by itself."""

    outer: Mapped
    """The text with signs. Its origin is the caller's."""
    values: dict[str, tuple[str | Leaf, ...]]
    """What each sign stands for: a choice's texts, and between them what stays as it is."""
    scope: Scope
    warnings: tuple[TranslationWarning, ...]

    @property
    def leaves(self) -> list[Leaf]:
        """All texts of choices, in order."""
        return [part for parts in self.values.values() for part in parts if isinstance(part, Leaf)]


Choices = Sequence[tuple[Mark, Choice | None]]
"""Marks of choices, with what each is; None for one that can't be read."""


def open_message(passage: Passage, scope: Scope | None, *, is_whole: bool) -> tuple[Passage, Opened | None]:
    """A text, of a message of that scope if it is a part of one already, without its choices.

    None where it is no message: it is to stay whole, none of its choices can be read, it has signs of its own
    or too many parts. The passage warns of its choices then.
    """
    text, choices = passage.source.text, _choices_in(passage)
    syntax = next((choice.syntax for _, choice in choices if choice is not None), None)
    if scope is None and syntax is not None:
        scope = Scope(syntax=syntax, has_pairs="''" in text)
    has_signs = re.search(f"[{_SIGNS}]", text) is not None
    # A prefix is of one sentence, of which there would be several.
    is_whole = is_whole or has_signs or bool(passage.options.target_prefix)
    if scope is None or is_whole or len(_SYNTAX.findall(text)) > _MAX_SIGNS:
        return replace(passage, warnings=tuple(_untranslated(passage, mark) for mark, _ in choices)), None
    return passage, _Opening(passage, choices, scope).opened()


def _choices_in(passage: Passage) -> Choices:
    """The choices of a text, in order. One that stands within quotes of ICU's is none, and all of these."""
    text = passage.source.text
    found: list[tuple[Mark, Choice | None]] = []
    for mark in passage.wanted.each(passage.marks):
        if mark.kind is Kind.CHOICE:
            found.append((mark, parse(text[slice(*mark.span)])))
    quoted = quotes(text) if found else []
    for rank, (mark, choice) in enumerate(found):
        if choice is None or choice.syntax is Syntax.ICU:
            place = bisect_right(quoted, mark.span[0], key=itemgetter(0)) - 1
            if place >= 0 and mark.span[0] < quoted[place][1]:
                found[rank] = replace(mark, span=quoted[place]), None
    return found


def _untranslated(passage: Passage, mark: Mark) -> TranslationWarning:
    """The warning of a choice that stays as it is."""
    return TranslationWarning(kind=WarningKind.UNTRANSLATED, span=passage.source.back(mark.span))


class _Opening:
    def __init__(self, passage: Passage, choices: Choices, scope: Scope) -> None:
        self._passage = passage
        self._choices = choices
        self._scope = scope
        self._tokens = TOKENS[scope.syntax, scope.number != ""]
        self._values: dict[str, tuple[str | Leaf, ...]] = {}
        self._warnings: list[TranslationWarning] = []

    def opened(self) -> Opened:
        source = self._passage.source
        edits = [(self._origin(span), sign) for span, sign in self._edits()]
        return Opened(
            outer=Mapped.of(source.origin).edited(edits),
            values=self._values,
            scope=self._scope,
            warnings=tuple(self._warnings),
        )

    def _origin(self, span: Span) -> Span:
        """The range of the caller's text, which tags at the ends of the span are no part of."""
        source = self._passage.source
        return source.starts[span[0]], source.ends[span[1] - 1]

    def _edits(self) -> Iterator[Edit]:
        passage = self._passage
        # A sign of a number begins no heading.
        shielded = passage.shielded.replace("#", "X" if self._scope.number else "#")
        sentences = segment(shielded, language=passage.languages[0], mode=passage.options.segmentation)
        position = 0
        for mark, choice in passage.wanted.each(self._choices):
            if mark.span[0] < position:
                continue
            span, kind, others = mark.span, Kind.PLACEHOLDER, self._choices[:0]
            branches = None if choice is None else self._branches(mark, choice)
            if choice is None or branches is None:
                self._warnings.append(_untranslated(passage, mark))
                sign = self._literal(kind, span)
            else:
                sentence = sentences[bisect_right(sentences, span[0], key=itemgetter(0)) - 1]
                in_sentence = self._others(sentence, mark)
                if position <= sentence[0] and self._can_repeat(sentence, mark, choice, in_sentence):
                    span, kind, others = sentence, Kind.BREAK, in_sentence
                elif choice.counts:
                    kind = Kind.QUANTITY
                scope = replace(
                    self._scope,
                    number=choice.argument if choice.has_sign_of_number else "",
                    has_offset=choice.has_offset,
                    max_branches=(self._scope.max_branches - 1) // len(branches),
                )
                leaves = [self._leaf(span, mark, choice, branch, others) for _, branch in branches]
                sign = self._sign(
                    kind, _parts(choice, branches, [Leaf(text=text, scope=scope) for text in leaves])
                )
            yield from self._signs_between(position, span[0])
            yield span, sign
            position = span[1]
        yield from self._signs_between(position, len(passage.source.text))

    def _others(self, sentence: Span, mark: Mark) -> Choices:
        """The other choices of a sentence."""
        first, last = (
            bisect_left(self._choices, place, key=lambda found: found[0].span[0]) for place in sentence
        )
        return [found for found in self._choices[first:last] if found[0] is not mark]

    def _branches(self, mark: Mark, choice: Choice) -> Sequence[tuple[str, Branch]] | None:
        """The texts of a choice for the target; None where they are too many, or tags stand between them."""
        passage, start = self._passage, mark.span[0]
        places = [
            start,
            *(moved(branch.span, start)[edge] for branch in choice.branches for edge in (0, 1)),
            mark.span[1],
        ]
        gaps = zip(places[::2], places[1::2], strict=True)
        if any(passage.is_crossed(gap) for gap in gaps) or choice.syntax is not self._scope.syntax:
            return None
        found = choice.branches_for(passage.languages)
        if self._has_tags(mark.span):
            # Each tag is in the translation as often as here.
            found = [(branch.under(branch.key), branch) for branch in choice.branches]
        is_small = len(choice.text) <= MAX_CHARACTERS and len(found) <= self._scope.max_branches
        return found if is_small else None

    def _can_repeat(self, sentence: Span, mark: Mark, choice: Choice, others: Choices) -> bool:
        """Whether all of a sentence may stand in each text of its choice."""
        (start, end), (first, last) = sentence, mark.span
        if sentence == mark.span:
            return True
        around = [(start, first + 1)] * (start < first) + [(last - 1, end)] * (last < end)
        inner = [choice.text[slice(*branch.span)] for branch in choice.branches]
        has_lines = any("\n" in (text if self._passage.is_markup else text.strip()) for text in inner)
        if end - start > MAX_CHARACTERS or has_lines or any(map(self._has_tags, around)):
            return False
        # "#" stands for something else within the choice than around it.
        text = "".join(self._passage.source.text[slice(*gap)] for gap in _gaps(sentence, mark, others))
        is_kept = not (choice.has_sign_of_number or self._scope.number)
        return is_kept or "#" not in text or not (self._scope.has_offset or "'#" in text or "#'" in text)

    def _has_tags(self, span: Span) -> bool:
        text = self._passage.source.text[slice(*span)]
        return self._passage.is_crossed(span) or (self._passage.is_markup and _OBJECT in text)

    def _leaf(self, span: Span, mark: Mark, choice: Choice, branch: Branch, others: Choices) -> Mapped:
        """One of a choice's texts, with all of the span around it that the choice stands in."""
        source, scope = self._passage.source, self._scope
        edits: list[Edit] = []
        if choice.has_sign_of_number or scope.number:
            number = f"{{{scope.number}, number}}" if scope.number else "'#'"
            edits += [
                (self._origin(sign.span()), number)
                for gap in _gaps(span, mark, others)
                for sign in TOKENS[Syntax.ICU, True].finditer(source.text, *gap)
                if sign[0] == "#"
            ]
        edits += self._without(mark, branch, is_alone=span == mark.span)
        for other, same in others:
            if same is not None and same.is_alike(choice):
                edits += self._without(other, next(each for each in same.branches if each.key == branch.key))
        start, end = self._origin(span)
        inner = Mapped.of(source.origin).part((start, end))
        return inner.edited((moved(place, -start), text) for place, text in sorted(edits))

    def _without(self, mark: Mark, branch: Branch, *, is_alone: bool = False) -> Iterator[Edit]:
        """What leaves of a choice one of its texts alone; a line's end is a space within a sentence."""
        source = self._passage.source
        first, last = moved(branch.span, mark.span[0])
        text = source.text[first:last]
        start, end, space = source.ends[first - 1], source.starts[last], ""
        if "\n" in text and not is_alone:
            start = source.starts[last - len(text.lstrip())]
            end = max(start, source.starts[first + len(text.rstrip())])
            space = " "
        of_choice = self._origin(mark.span)
        yield (of_choice[0], start), space
        yield (end, of_choice[1]), space

    def _signs_between(self, start: int, end: int) -> Iterator[Edit]:
        position = start
        while (found := self._tokens.search(self._passage.source.text, position, end)) is not None:
            first, last = found.span()
            if found[0] == "''":
                yield (first, last), "'"
            else:
                if self._passage.is_crossed((first, last)):
                    last = first + 1
                is_number = found[0] == "#" or ", number" in found[0] or is_quantity(found[0])
                kind = Kind.QUANTITY if is_number else Kind.PLACEHOLDER
                yield (first, last), self._literal(kind, (first, last))
            position = last

    def _literal(self, kind: Kind, span: Span) -> str:
        """The sign for a part of the text that stays as it is."""
        return self._sign(kind, (self._passage.source.origin[slice(*self._origin(span))],))

    def _sign(self, kind: Kind, value: Iterable[str | Leaf]) -> str:
        sign = chr(_FIRST_SIGNS[kind] + len(self._values))
        self._values[sign] = tuple(value)
        return sign


def _gaps(sentence: Span, mark: Mark, others: Choices) -> Iterator[Span]:
    """The parts of a sentence that are in none of its choices."""
    return outside(sentence, sorted((mark.span, *(other.span for other, _ in others))))


def _parts(
    choice: Choice, branches: Sequence[tuple[str, Branch]], leaves: Sequence[Leaf]
) -> Iterator[str | Leaf]:
    """A choice of these texts, with the syntax between them."""
    before = choice.head
    for (lead, _), leaf in zip(branches, leaves, strict=True):
        yield before + lead
        yield leaf
        before = "}" if choice.syntax is Syntax.ICU else ""
    yield before + choice.tail


def close_message(
    opened: Opened, outer: TranslatedText, leaves: Sequence[TranslatedText], *, is_markup: bool
) -> TranslatedText:
    """A message's translation, of those of the text with signs and of all leaves."""
    found = [outer, *leaves]
    texts = [opened.outer, *(leaf.text for leaf in opened.leaves)]

    def closed(rank: int) -> TranslatedHypothesis:
        ranked = [each.at(rank, text.text) for each, text in zip(found, texts, strict=True)]
        return _closed(opened, ranked, is_markup=is_markup)

    whole = whole_text(found, closed)
    warnings = [
        replace(warning, span=text.back(warning.span))
        for each, text in zip(found, texts, strict=True)
        for warning in each.warnings
    ] + [*opened.warnings]
    confidences = []
    if known := [each.confidence for each in found if each.confidence is not None]:
        # One for all: a sentence of it may stand in many places.
        spans = (0, len(opened.outer.origin)), (0, len(whole.text))
        confidences.append(
            SentenceConfidence(source=spans[0], target=spans[1], confidence=sum(known) / len(known))
        )
    return replace(
        whole,
        warnings=tuple(sorted(dict.fromkeys(warnings), key=lambda warning: warning.span)),
        confidences=tuple(confidences),
    )


def _closed(
    opened: Opened, hypotheses: Sequence[TranslatedHypothesis], *, is_markup: bool
) -> TranslatedHypothesis:
    """The translation with what its signs stand for. The hypotheses are of the text with signs, then of the
    leaves."""
    outer, *of_leaves = hypotheses
    remaining = iter(of_leaves)
    written: dict[str, tuple[str, list[Alignment]]] = {}
    for sign, parts in opened.values.items():
        text, of_text = "", []
        for part in parts:
            if isinstance(part, Leaf):
                hypothesis = next(remaining)
                of_text += [
                    replace(link, source=part.text.back(link.source), target=moved(link.target, len(text)))
                    for link in hypothesis.alignments
                ]
            text += part if isinstance(part, str) else hypothesis.text
        written[sign] = text, of_text
    found = list(_pattern(opened.scope.syntax, opened.scope.number != "", is_markup).finditer(outer.text))
    answer = Mapped.of(outer.text).edited(
        (each.span(), written[each[0]][0] if each[0] in written else _escaped(each, opened.scope))
        for each in found
    )
    links = [
        replace(link, source=opened.outer.back(link.source), target=answer.onto(link.target))
        for link in outer.alignments
    ] + [
        replace(link, target=moved(link.target, answer.forth(each.start())))
        for each in found
        for link in written.get(each[0], ("", []))[1]
    ]
    return whole_of(hypotheses, answer.text, sorted(links, key=lambda link: link.target))


@functools.cache
def _pattern(syntax: Syntax, is_counted: bool, is_markup: bool) -> re.Pattern[str]:
    """Finds the signs of a translation, and what may be syntax in it; tags and references are none."""
    may_be = f"'|[{{}}{'#' * is_counted}]+" if syntax is Syntax.ICU else "[{}]"
    return re.compile(rf"{_MARKUP + '|' if is_markup else ''}[{_SIGNS}]|{may_be}")


def _escaped(found: re.Match[str], scope: Scope) -> str:
    """What may be syntax, as it is written where it is none."""
    text = found[0]
    if found.lastgroup is not None:
        return text
    if scope.syntax is Syntax.FLUENT:
        return f'{{"{text}"}}'
    # An apostrophe quotes where syntax follows, and a second one where it ends there.
    is_apart = text == "'" and _APART.match(found.string, found.start()) is not None
    return text if is_apart and not scope.has_pairs else "''" if text == "'" else f"'{text}'"
