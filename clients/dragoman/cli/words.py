"""The words of a text, as the server tells them apart for its alignments."""

import re
import unicodedata
from collections.abc import Iterator

Span = tuple[int, int]

_RUN = re.compile(r"\S+")


def words(text: str) -> Iterator[Span]:
    """Ranges of the words, and of the punctuation before and after each, in order."""
    for run in _RUN.finditer(text):
        start, end = run.span()
        of_words = [position for position in range(start, end) if _is_of_a_word(text[position])]
        first, last = (of_words[0], of_words[-1] + 1) if of_words else (end, end)
        yield from (span for span in ((start, first), (first, last), (last, end)) if span[0] < span[1])


def _is_of_a_word(character: str) -> bool:
    """Whether it is a letter, a number or a mark on one."""
    return unicodedata.category(character)[0] in "LNM"
