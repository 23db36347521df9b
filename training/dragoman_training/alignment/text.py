"""Text of two languages, line by line, as the words that are aligned."""

import functools
import re
import unicodedata
from dataclasses import dataclass

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
