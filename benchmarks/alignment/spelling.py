"""Tokenised text as people write it: without the spaces before punctuation, with its capitals.

Pure. A model that learnt from ordinary text reads "herr präsident , herr kommissar !" as something else.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dragoman_training.alignment.corpus.text import WordRule
from dragoman_training.smt.surface import Casing

RULE = WordRule(tokenize=True)
"""What is a word of a corpus."""
_JOINS_LEFT = re.compile(r"[.,;:!?)\]»”…%]|'(s|m|d|t|re|ve|ll)\b", re.IGNORECASE)
_JOINS_RIGHT = re.compile(r"[(\[«“¿¡]|\w+['’]")


@dataclass(frozen=True, kw_only=True)
class Spelled:
    """A line, and where its words begin."""

    text: str
    starts: tuple[int, ...]

    def words(self, span: tuple[int, int]) -> range:
        """The numbers of the words that a range of characters touches."""
        first, last = (bisect_right(self.starts, place) - 1 for place in (span[0], span[1] - 1))
        return range(max(first, 0), last + 1)


def spell(lines: Iterable[Sequence[str]], corpus: Iterable[str] | None) -> list[Spelled]:
    """Words as lines. With a corpus they have the capitals that are usual there, a line's first has one."""
    capitals = {} if corpus is None else Casing.of(map(RULE.split, corpus)).form
    result = []
    for words in lines:
        text, starts = "", []
        for number, word in enumerate(words):
            written = capitals.get(word, word)
            if number == 0 and corpus is not None:
                written = written[:1].upper() + written[1:]
            joins = number == 0 or _JOINS_LEFT.match(word) or _JOINS_RIGHT.fullmatch(words[number - 1])
            text += "" if joins else " "
            starts.append(len(text))
            text += written
        result.append(Spelled(text=text, starts=tuple(starts)))
    return result
