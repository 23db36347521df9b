"""Sentence pairs as flat arrays of word numbers, and the vocabularies that number the words.

Knows no model. A bitext has a direction: each target word comes from a source word of its pair, or from NULL.

Shapes: S sentence pairs, N words of a side.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
Offsets = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words of a side, most frequent first. The number behind the last is of every unknown word."""

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_number", {word: number for number, word in enumerate(self.words)})

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> "Vocabulary":
        """All words of the sentences."""
        count = Counter(word for sentence in sentences for word in sentence)
        return cls(tuple(sorted(count, key=lambda word: (-count[word], word))))

    @property
    def unknown(self) -> int:
        """The number of unknown words."""
        return len(self.words)

    def number(self, word: str) -> int:
        """A word's number."""
        found: int = self._number.get(word, len(self.words))  # type: ignore[attr-defined]
        return found


@dataclass(frozen=True, eq=False)
class Sentences:
    """One side of a bitext."""

    word_N: Ids
    first_S: Offsets
    """[S + 1]: where each sentence begins, and the end."""
    num_words: int
    """Word numbers are below it."""

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]], num_words: int) -> "Sentences":
        """Sentences of word numbers."""
        size_S = np.fromiter((len(sentence) for sentence in sentences), np.int64, len(sentences))
        word_N = np.fromiter(
            (word for sentence in sentences for word in sentence), np.int32, int(size_S.sum())
        )
        return cls(word_N, np.concatenate([[0], np.cumsum(size_S)]), num_words)

    @property
    def size_S(self) -> Offsets:
        """Words of each sentence."""
        return np.diff(self.first_S)

    def select(self, which: NDArray[np.bool_]) -> "Sentences":
        """Only some of the sentences."""
        size_S = self.size_S
        first_S = np.concatenate([[0], np.cumsum(size_S[which])])
        return Sentences(self.word_N[np.repeat(which, size_S)], first_S, self.num_words)


@dataclass(frozen=True, eq=False)
class Bitext:
    """Sentence pairs in one direction."""

    source: Sentences
    target: Sentences

    def __post_init__(self) -> None:
        assert len(self.source.first_S) == len(self.target.first_S)

    def __len__(self) -> int:
        return len(self.source.first_S) - 1

    def reversed(self) -> "Bitext":
        """The other direction."""
        return Bitext(self.target, self.source)

    def trainable(self, max_words: int) -> "Bitext":
        """The pairs that a model learns from: no side is empty, none has more than `max_words`."""
        sizes_S = self.source.size_S, self.target.size_S
        which = (np.minimum(*sizes_S) > 0) & (np.maximum(*sizes_S) <= max_words)
        return Bitext(self.source.select(which), self.target.select(which))
