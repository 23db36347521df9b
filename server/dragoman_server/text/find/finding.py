"""All that must be kept of a text: by the rules of `patterns.toml`, and by all others that find something.

Pure.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import chain

from dragoman_bundle.languages import HANGUL, UNSPACED_CHARACTERS

from dragoman_server.text.choices import Syntax, ends_of_braces
from dragoman_server.text.find.pairs import find_pairs
from dragoman_server.text.find.unknown import names_in
from dragoman_server.text.mapped import Span
from dragoman_server.text.marks import Kind, Mark, blanked, disjoint
from dragoman_server.text.passage import Passage

_TOUCHING = re.compile(f"[{UNSPACED_CHARACTERS}]|([{HANGUL}])")
_PART = re.compile("§([a-z_]+)§")
_APART = (Kind.PLACEHOLDER, Kind.BREAK)
"""What is no part of a word that it touches."""
_MAX_TOUCHING = 400
"""Characters behind it that are looked at for what touches it."""
_TRAILING = frozenset(".,;:!?'\"…*_。，")
_BRACKETS = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A rule of the table."""

    kind: Kind
    expression: str
    """A regular expression in Python's syntax, in which no group has a name."""
    examples: tuple[str, ...]
    """Texts with ⟦…⟧ around what is found in them by all rules."""
    is_trimmed: bool = False
    """Whether the sentence's own marks at its end, and a bracket that was opened before it, are left out."""
    nested: Syntax | None = None
    """The syntax by which it goes on to the end of the brace that it begins with; without one it is none."""


@dataclass(frozen=True)
class Table:
    """The rules, and what is found by them."""

    rules: tuple[Rule, ...]
    trigger: re.Pattern[str]
    """Finds something in every text in which a rule does."""
    any_rule: re.Pattern[str]
    """The rules as one expression, whose last group's name is the rank of the rule."""

    def find(self, text: str) -> Iterator[Mark]:
        """The marks of a text, in order and without overlaps."""
        if not self.trigger.search(text):
            return
        position = 0
        rule: Rule | None = None
        ends: dict[Syntax, dict[int, int]] = {}
        searched = _TOUCHING.sub(lambda found: "\ufffb" if found[1] else "\ufffc", text)
        while (place := self._place(searched, position, rule)) is not None:
            start, end, rule = place
            if syntax := rule.nested:
                if syntax not in ends:
                    ends[syntax] = ends_of_braces(text, syntax)
                if start not in ends[syntax]:
                    position, rule = start + 1, None
                    continue
                end = ends[syntax][start]
            if rule.is_trimmed:
                end = _without_punctuation(text, start, end)
            yield Mark(span=(start, end), kind=rule.kind)
            position = max(end, start + 1)

    def _place(self, text: str, position: int, before: Rule | None) -> tuple[int, int, Rule] | None:
        """Where a rule finds something first, and which; behind a placeholder as at a text's beginning."""
        found = None
        if before and before.kind in _APART:
            part = text[position : position + _MAX_TOUCHING]
            found = self.any_rule.match(part)
            if found and self._rule_of(found).kind is Kind.EMOJI:
                # ':)' stands behind a space: in '(%d:)' the bracket is the text's.
                found = None
            if found and found.end() > _MAX_TOUCHING // 2 and len(part) == _MAX_TOUCHING:
                # The rule may not have seen all that it looks at.
                found = None
        offset = position if found else 0
        if found := found or self.any_rule.search(text, position):
            return offset + found.start(), offset + found.end(), self._rule_of(found)
        return None

    def _rule_of(self, found: re.Match[str]) -> Rule:
        assert found.lastgroup is not None
        return self.rules[int(found.lastgroup[1:])]


def _read() -> Table:
    folder = files("dragoman_server.text.find")
    listed = tomllib.loads(folder.joinpath("patterns.toml").read_text("utf-8"))
    parts = {
        name: _any_of(
            word
            for line in folder.joinpath(f"{name}.txt").read_text("utf-8").splitlines()
            if not line.startswith("#")
            for word in line.split()
        )
        for name in ("hosts", "files")
    }

    def expand(expression: str) -> str:
        return _PART.sub(lambda found: parts[found[1]], expression)

    for name, expression in listed["parts"].items():
        parts[name] = expand(expression)
    rules = tuple(
        Rule(
            kind=Kind(rule["kind"]),
            expression=rule["expression"],
            examples=tuple(rule["examples"]),
            is_trimmed=rule.get("is_trimmed", False),
            nested=Syntax(rule["nested"]) if "nested" in rule else None,
        )
        for rule in listed["rule"]
    )
    expressions = (f"(?P<r{rank}>{expand(rule.expression)})" for rank, rule in enumerate(rules))
    return Table(rules, re.compile(listed["trigger"]), re.compile("|".join(expressions)))


def _any_of(words: Iterable[str]) -> str:
    """An expression for any of the words, the longest first, which reads no character twice."""
    branches: dict[str, list[str]] = {}
    for word in words:
        branches.setdefault(word[:1], []).append(word[1:])
    is_end = branches.pop("", None) is not None
    if not branches:
        return ""
    inner = "|".join(re.escape(first) + _any_of(rests) for first, rests in sorted(branches.items()))
    return f"(?:{inner}){'?' if is_end else ''}"


def _without_punctuation(text: str, start: int, end: int) -> int:
    """Where it ends without the sentence's own marks, and without a bracket that was opened before it."""
    while end > start + 1:
        last = text[end - 1]
        opener = _BRACKETS.get(last)
        if opener is not None:
            if text.count(opener, start, end) >= text.count(last, start, end):
                break
        elif last not in _TRAILING:
            break
        end -= 1
    return end


TABLE = _read()
"""The table of the rules."""


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
