"""Lines of text as words, and words as text again.

Punctuation stands apart, and a mark on it says where there was no white space, so that words tell their text.
A sentence's first word is written as it is within sentences.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

JOINER = "￭"
_WORD = re.compile(r"\w+|[^\w\s]")


def split_words(line: str) -> list[str]:
    """The words of a line. A mark before or behind punctuation says that it touches what stands there."""
    words: list[str] = []
    last_end, last_marked = -1, True
    for match in _WORD.finditer(line.replace(JOINER, " ")):
        word, touches = match.group(), match.start() == last_end
        last_end = match.end()
        is_word = word[0].isalnum() or word[0] == "_"
        if touches and is_word and not last_marked:
            words[-1] += JOINER
        words.append(JOINER + word if touches and not is_word else word)
        last_marked = is_word
    return words


def join_words(words: Iterable[str]) -> str:
    """The reverse, up to white space."""
    line = " ".join(words)
    return line.replace(f" {JOINER}", "").replace(f"{JOINER} ", "").replace(JOINER, "")


@dataclass(frozen=True, eq=False)
class Casing:
    """How words are written where no sentence begins, by their lower-case forms."""

    form: Mapping[str, str]

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> "Casing":
        """Each word's most frequent form behind the first word of sentences."""
        counts: dict[str, Counter[str]] = {}
        for sentence in sentences:
            for word in sentence[1:]:
                counts.setdefault(word.lower(), Counter())[word] += 1
        return cls({low: max(sorted(forms), key=forms.__getitem__) for low, forms in counts.items()})

    def within(self, words: Sequence[str]) -> list[str]:
        """A sentence as it is written within another: only its first word may change."""
        return [self.form.get(words[0].lower(), words[0]), *words[1:]] if words else []


def begins_large(line: str) -> bool:
    """Whether the first letter is a capital."""
    return next((char.isupper() for char in line if char.isalpha()), False)


def capitalize(line: str) -> str:
    """With a capital as its first character, if that is a letter."""
    return line[:1].upper() + line[1:]
