"""Choices: where a message has several texts, of which a program shows one by an argument. Pure.

ICU's MessageFormat writes "{n, plural, one {# file} other {# files}}", Fluent "{ $n ->", a line for each text
such as "[one] a file" or "*[other] { $n } files", and "}". Owns the syntax of both.
"""

import enum
import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman_server.text.find.notation import notation
from dragoman_server.text.mapped import Span

_CATEGORIES = frozenset(("zero", "one", "two", "few", "many", "other"))
_STRING = r"""\{\s{0,9}"(?:[^"\\\n]|\\.){0,200}"\s{0,9}\}"""
_QUOTED = r"""''|'[{}](?:[^']++|'')*+'"""
_ICU_HEAD = re.compile(
    r"\{\s*(?P<argument>[^\s{},]+)\s*,\s*(?P<kind>plural|selectordinal|select)\s*,"
    r"(?P<offset>\s*offset:\s*\d+(?=\s))?"
)
_ICU_KEY = re.compile(r"(\s*)(=-?\d+(?:\.\d+)?|[^\s{}=#',|<>&]+)(\s*\{)")
_FLUENT_HEAD = re.compile(r"\{\s*(?P<argument>[^{}]*?)\s*->[ \t]*\r?(?=\n)")
_FLUENT_KEY = re.compile(
    r"(\n[ \t]{0,200}\*?\[[ \t]*)([\w.+-]+)([ \t]*\][ \t]*(?:\r?\n[ \t]+(?![ \t\[*}]))?)|\{"
)
_NUM_SAMPLES = 200


class Syntax(enum.Enum):
    """The program that reads a message."""

    ICU = "icu"
    FLUENT = "fluent"


_BRACES = {
    Syntax.ICU: re.compile(rf"{_QUOTED}|[{{}}]"),
    Syntax.FLUENT: re.compile(rf"{_STRING}|[{{}}]"),
}
TOKENS = {
    (Syntax.ICU, False): re.compile(rf"{_QUOTED}|\{{[^{{}}]{{0,1000}}\}}|[{{}}]"),
    (Syntax.ICU, True): re.compile(rf"{_QUOTED.replace('[{}]', '[{}#]')}|\{{[^{{}}]{{0,1000}}\}}|[{{}}#]"),
    (Syntax.FLUENT, False): re.compile(rf"{_STRING}|\{{[^{{}}]{{0,1000}}\}}|[{{}}]"),
}
"""Finds what is no text by itself, by the syntax and whether "#" stands for a number: arguments, what is
quoted, two apostrophes that stand for one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Branch:
    """One of the texts."""

    key: str
    """What it is shown for."""
    before: str
    """What stands before the key, from the end of the text before."""
    behind: str
    """What stands between the key and the text."""
    span: Span
    """The text's place in the choice."""

    def under(self, key: str) -> str:
        """What stands before it where it is shown for another key."""
        before = self.before if key == self.key else self.before.replace("*[", " [")
        return before + key + self.behind


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A choice with its texts."""

    syntax: Syntax
    text: str
    argument: str
    counts: str
    """What its keys are: "categories" or "ordinals" of CLDR, or "" for names of any kind."""
    has_offset: bool
    head: str
    branches: tuple[Branch, ...]
    other: Branch
    """The text that is shown where no other is."""
    tail: str

    def branches_for(self, languages: tuple[str, str]) -> Sequence[tuple[str, Branch]]:
        """The texts with what stands before each, for a translation between two languages.

        Numbers' texts are those of the target's categories; where the source has no such, the other's.
        """
        wanted = notation(languages[1]).data.get(self.counts)
        if wanted is None:
            return [(branch.under(branch.key), branch) for branch in self.branches]
        keys = {branch.key for branch in self.branches}
        has_one = [self._counts_things and _has_one_thing(language) for language in languages]
        exact = "=1" if self.syntax is Syntax.ICU else "1"
        of_one = next((branch for branch in self.branches if branch.key == exact and has_one[1]), self.other)
        found: list[tuple[str, Branch]] = []
        for branch in self.branches:
            key = branch.key
            if key == "one" and has_one == [True, False] and self._is_of_one_thing(branch):
                # It says "one" in words, which of the target's numbers more than one thing may be.
                found += [] if exact in keys else [(branch.under(exact), branch)]
                branch = self.other if key in wanted else branch
            elif branch is self.other:
                missing = [name for name in wanted if name not in keys and name != "other"]
                found += [(branch.under(name), of_one if name == "one" else branch) for name in missing]
            if branch is self.other or key in wanted or key not in _CATEGORIES:
                found.append((branch.under(key), branch))
        return found

    @property
    def _counts_things(self) -> bool:
        return self.counts == "categories" and not self.has_offset

    @property
    def has_sign_of_number(self) -> bool:
        """Whether "#" stands for its number within it."""
        return self.counts != "" and self.syntax is Syntax.ICU

    def is_alike(self, other: "Choice | None") -> bool:
        """Whether of another choice the text of the same key is always shown."""
        if other is None or other.head.split() != self.head.split():
            return False
        return [branch.key for branch in self.branches] == [branch.key for branch in other.branches]

    def _is_of_one_thing(self, branch: Branch) -> bool:
        text = self.text[slice(*branch.span)]
        return "#" not in text and not re.search(rf"\{{\s*{re.escape(self.argument)}(?![\w-])", text)


@functools.cache
def _has_one_thing(language: str) -> bool:
    """Whether a language has a plural category for one thing and nothing else."""
    known = notation(language)
    return bool(known.data) and [n for n in range(_NUM_SAMPLES) if known.category(n) == "one"] == [1]


def parse(text: str) -> Choice | None:
    """The choice that a text is; None for one that its syntax refuses, or that has no text for all else."""
    if (head := _ICU_HEAD.match(text)) is not None:
        kind = head["kind"]
        counts = {"plural": "categories", "selectordinal": "ordinals"}.get(kind, "")
        branches = list(_icu_branches(text, head.end()))
        other = next((branch for branch in branches if branch.key == "other"), None)
        is_known = all(branch.key[0] == "=" or branch.key in _CATEGORIES for branch in branches)
        if not (is_known if counts else all(branch.key[0] != "=" for branch in branches)):
            return None
        end, syntax = branches[-1].span[1] + 1 if branches else 0, Syntax.ICU
    elif (head := _FLUENT_HEAD.match(text)) is not None:
        branches = list(_fluent_branches(text, head.end()))
        starred = [branch for branch in branches if "*" in branch.before]
        other = starred[0] if len(starred) == 1 else None
        names = {branch.key for branch in branches if branch.key[0].isalpha()}
        is_counted = "other" in names and len(names) > 1 and names <= _CATEGORIES
        counts = ("ordinals" if '"ordinal"' in head["argument"] else "categories") if is_counted else ""
        end, syntax = branches[-1].span[1] if branches else 0, Syntax.FLUENT
    else:
        return None
    if other is None or len({branch.key for branch in branches}) < len(branches) or text[end:].strip() != "}":
        return None
    return Choice(
        syntax=syntax,
        text=text,
        argument=head["argument"],
        counts=counts,
        has_offset=syntax is Syntax.ICU and head["offset"] is not None,
        head=head[0],
        branches=tuple(branches),
        other=other,
        tail=text[end:],
    )


def _icu_branches(text: str, position: int) -> Iterator[Branch]:
    ends = dict(_ends(text, Syntax.ICU))
    while (key := _ICU_KEY.match(text, position)) is not None and key.end() - 1 in ends:
        position = ends[key.end() - 1]
        yield Branch(key=key[2], before=key[1], behind=key[3], span=(key.end(), position - 1))


def _fluent_branches(text: str, position: int) -> Iterator[Branch]:
    """The texts, without the white space around each."""
    ends = dict(_ends(text, Syntax.FLUENT))
    keys = []
    start = position
    while (found := _FLUENT_KEY.search(text, position)) is not None:
        position = ends.get(found.start(), found.end()) if found[2] is None else found.end()
        if found[2] is not None:
            keys.append(found)
    if not keys or text[start : keys[0].start()].strip():
        return
    stops = [*(key.start() for key in keys[1:]), len(text) - 1]
    for key, stop in zip(keys, stops, strict=True):
        end = key.end() + len(text[key.end() : stop].rstrip())
        yield Branch(
            key=key[2], before=text[start : key.start()] + key[1], behind=key[3], span=(key.end(), end)
        )
        start = end


def quotes(text: str) -> list[Span]:
    """The ranges that ICU takes as they are, with their apostrophes."""
    return [found.span() for found in re.finditer(_QUOTED, text) if found[0] != "''"]


def ends_of_braces(text: str, syntax: Syntax) -> dict[int, int]:
    """Where each brace that opens something has it end, of those that are closed; also of those in quotes."""
    return {**dict(_ends(text, None)), **dict(_ends(text, syntax))}


def _ends(text: str, syntax: Syntax | None) -> Iterator[Span]:
    opened: list[int] = []
    for brace in (_BRACES[syntax] if syntax else re.compile("[{}]")).finditer(text):
        if brace[0] == "{":
            opened.append(brace.start())
        elif brace[0] == "}" and opened:
            yield opened.pop(), brace.end()
