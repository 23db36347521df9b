"""Text of two languages, line by line, as the words that are aligned."""

import functools
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from dragoman_bundle.languages import UNSPACED_CHARACTERS

_RUN = re.compile(r"[^ \t\r\n]+")


@dataclass(frozen=True, kw_only=True)
class WordRule:
    """What is a word, and which words are the same. A saved aligner has the rule that it was trained with."""

    tokenize: bool = False
    """Whether punctuation stands apart, and each character of a script that writes no spaces, with the marks
    on it; else they lie between spaces, tabs and ends of lines alone, as other aligners have it."""
    lowercase: bool = True
    """Whether the case of letters means nothing."""

    def split(self, line: str) -> list[str]:
        """The words of a line, as they stand in it."""
        return self._pattern.findall(line)

    def spans(self, line: str) -> list[tuple[int, int]]:
        """Where in the line each of its words stands."""
        return [match.span() for match in self._pattern.finditer(line)]

    def normalize(self, line: str) -> list[str]:
        """The words of a line as the model knows them: as many as `split` gives."""
        words = self.split(line)
        return [word.lower() for word in words] if self.lowercase else words

    @property
    def _pattern(self) -> re.Pattern[str]:
        return _word_pattern() if self.tokenize else _RUN


@functools.cache
def _word_pattern() -> re.Pattern[str]:
    # To `re` a mark is no part of a word: a vowel of Devanagari, an accent that is not composed.
    marks = "".join(mark for mark in map(chr, range(0x20000)) if unicodedata.category(mark)[0] == "M")
    return re.compile(
        rf"[{UNSPACED_CHARACTERS}][{marks}]*|(?:(?![{UNSPACED_CHARACTERS}])[\w{marks}])+|[^\w\s]"
    )


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a file of UTF-8. Raises ValueError, with the line, for other bytes."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number} is not UTF-8: {error.reason}") from error


def read_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Lines of both files. Raises ValueError at the line where one ends before the other."""
    for number, (one, other) in enumerate(zip_longest(read_lines(source), read_lines(target)), 1):
        if one is None or other is None:
            shorter, longer = (source, target) if one is None else (target, source)
            raise ValueError(
                f"{shorter} ends after line {number - 1}, {longer} goes on: both need as many lines"
            )
        yield one, other
