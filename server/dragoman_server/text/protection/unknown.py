"""Words that a model can't read: its vocabulary lacks them in part, or they are of a foreign script."""

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from dragoman_server.text.cleaning import Span
from dragoman_server.text.protection.protected import Protected, SpanKind
from dragoman_server.text.protection.scripts import is_foreign
from dragoman_server.text.words import words


def unreadable_words(text: str, span: Span, unknown: Sequence[Span], *, language: str) -> Iterator[Protected]:
    """The words of a unit at `span` of `text` that hold any of the `unknown` ranges, neighbours as one.

    A sign that is unknown is left out of the sentence and set in afterwards, as emoji are; one that is
    doubled, such as "**", stays together.
    """
    start, end = span
    unit = text[start:end]
    is_known = _Known(unknown)
    found: list[Span] = []
    for first, last in words(unit):
        is_unknown = not is_known(first, last)
        word = unit[first:last]
        if not (is_unknown or is_foreign(word, language)):
            continue
        if not any(map(str.isalnum, word)):
            for position, end_of_run in _runs_of_one_sign(word, first):
                if not is_known(position, position + 1):
                    yield Protected(span=(start + position, start + end_of_run), kind=SpanKind.EMOJI)
        elif found and not unit[found[-1][1] : first].strip():
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    for first, last in found:
        yield Protected(span=(start + first, start + last), kind=SpanKind.UNKNOWN)


class _Known:
    """Whether a range touches none of those that are `unknown`, which are in order and don't overlap."""

    def __init__(self, unknown: Sequence[Span]) -> None:
        self._unknown = unknown
        self._ends = [end for _, end in unknown]

    def __call__(self, first: int, last: int) -> bool:
        place = bisect_right(self._ends, first)
        return place == len(self._unknown) or self._unknown[place][0] >= last


def _runs_of_one_sign(word: str, offset: int) -> Iterator[Span]:
    """Where in a unit each run of the same sign begins and ends."""
    position = offset
    for _, run in itertools.groupby(word):
        end = position + len(list(run))
        yield position, end
        position = end
