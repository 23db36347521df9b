"""Brackets and quotation marks that belong together: which marks of a text are pairs, and how they compare.

Pure.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from dragoman_server.text.mapped import Span
from dragoman_server.text.marks import Kind, Mark

BRACKETS = (
    "()[]{}༺༻༼༽᚛᚜⁅⁆⁽⁾₍₎⌈⌉⌊⌋\u2329\u232a❨❩❪❫❬❭❮❯❰❱❲❳❴❵⟅⟆⟦⟧⟨⟩⟪⟫⟬⟭⟮⟯⦃⦄⦅⦆⦇⦈⦉⦊⦋⦌⦍⦐⦏⦎⦑⦒⦓⦔⦕⦖⦗⦘⧘⧙⧚⧛⧼⧽"
    "⸢⸣⸤⸥⸦⸧⸨⸩⹕⹖⹗⹘⹙⹚⹛⹜〈〉《》【】〔〕〖〗〘〙〚〛﹙﹚﹛﹜﹝﹞（）［］｛｝｟｠｢｣"
)
CLOSING = dict(zip(BRACKETS[::2], BRACKETS[1::2], strict=True))
OPENING = {closing: opening for opening, closing in CLOSING.items()}
QUOTES = ('"„“”‟〝〞', "'‚‘’‛", "«»", "‹›", "「」", "『』")
"""The marks that close each other, by turns of quotations and of those within."""
FAMILY = {sign: rank for rank, family in enumerate(QUOTES) for sign in family}
ONE_SIDED = frozenset("„“”‟〝〞«»‹›「」『』")
"""The quotation marks that are no apostrophes, and that show on which side they stand."""
_UNMISTAKABLE = re.compile(f'["‚{re.escape(BRACKETS)}{"".join(sorted(ONE_SIDED))}]')
"""What is no apostrophe."""

Pair = tuple[Mark | None, Mark | None]
"""What opens and what closes; one of the two may be elsewhere."""


def matched(marks: Iterable[Mark]) -> list[Pair]:
    """The pairs among marks, which are in order, in the order that they begin in."""
    found: list[Pair] = []
    opened = Nesting()
    for mark in marks:
        if mark.kind is Kind.OPENING:
            opened.append(_sort(mark), len(found))
            found.append((mark, None))
        elif mark.kind is Kind.CLOSING:
            if ranks := opened.close(_sort(mark)):
                found[ranks[-1]] = found[ranks[-1]][0], mark
            else:
                found.append((None, mark))
    return found


def sort_of(pair: Pair) -> tuple[str, bool, bool]:
    """The sort that a pair is of: two of one sort may stand for each other."""
    opening, closing = pair
    return _sort(opening or closing), opening is None, closing is None


def is_within(span: Span, pair: Pair) -> bool:
    """Whether a span stands within a pair, or on that side of the only one of it."""
    opening, closing = pair
    return (opening is None or opening.span[1] <= span[0]) and (closing is None or span[1] <= closing.span[0])


def call_within(text: str, pair: Pair) -> str:
    """The question or exclamation mark before a bracket that closes, "(Really?)"; empty for none."""
    closing = pair[1]
    if closing is None or _sort(closing) not in CLOSING:
        return ""
    end = closing.span[0]
    mark = unicodedata.normalize("NFKC", text[max(0, end - 2) : end].rstrip()[-1:])
    return mark if mark in ("?", "!") else ""


def has_words_outside(text: str, pairs: Iterable[Pair], start: int = 0) -> bool:
    """Whether there are words behind `start` in none of the pairs."""
    spans = [
        (opening.span[0] if opening else start, closing.span[1] if closing else len(text))
        for opening, closing in pairs
    ]
    parts = []
    for first, last in sorted(spans):
        parts.append(text[start:first])
        start = max(start, last)
    return any(map(str.isalnum, "".join((*parts, text[start:]))))


def adds_signs(answer: str, source: str) -> bool:
    """Whether an answer has more signs of some sort than its source, with a partner or without."""
    return bool(_count_signs(answer) - _count_signs(source))


def without_signs(text: str) -> str:
    """The text without brackets and quotation marks."""
    return _UNMISTAKABLE.sub("", text)


def _count_signs(text: str) -> Counter[str]:
    signs = unicodedata.normalize("NFKC", "".join(_UNMISTAKABLE.findall(text)))
    return Counter('"' if sign in FAMILY else sign for sign in signs)


def _sort(mark: Mark | None) -> str:
    """The bracket that opens it; of any quotation mark the plain one."""
    assert mark is not None
    assert mark.output is not None
    sign = mark.output.strip()
    return sign if sign in CLOSING else OPENING.get(sign, '"')


class Nesting:
    """What was opened and not closed yet, each with its place."""

    def __init__(self) -> None:
        self._stack: list[tuple[str | int, int]] = []
        self._num_open: Counter[str | int] = Counter()

    def __contains__(self, key: str | int) -> bool:
        return self._num_open[key] > 0

    @property
    def last(self) -> int | None:
        """The place of the last one."""
        return self._stack[-1][1] if self._stack else None

    def append(self, key: str | int, place: int) -> None:
        self._stack.append((key, place))
        self._num_open[key] += 1

    def close(self, key: str | int | None) -> list[int]:
        """The places of all down to the last one of that key, which are open no more; of None of all."""
        places: list[int] = []
        if key is None or key in self:
            last: str | int | None = None
            while self._stack and (last is None or last != key):
                last, place = self._stack.pop()
                self._num_open[last] -= 1
                places.append(place)
        return places
