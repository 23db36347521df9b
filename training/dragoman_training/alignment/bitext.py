"""Lines as words, sentence pairs as flat arrays of their numbers in vocabularies, and possible links.

Knows no model. A bitext has a direction: each target word comes from a source word of its pair, or from NULL.
The links of a sentence pair with l source and m target words are a matrix [m, l + 1]: by target word, and
within that by source position, NULL first. Word pairs are numbered by source word, then by target word.

Shapes: S sentence pairs, N words of a side, P distinct word pairs, L links, V source words and NULL.
"""

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from dragoman_bundle.languages import UNSPACED_CHARACTERS
from numba import njit
from numpy.typing import NDArray

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


Ids = NDArray[np.int32]
Offsets = NDArray[np.int64]
Numbers = NDArray[np.float64]
WordPair = tuple[Sequence[str], Sequence[str]]
"""The words of a sentence and those of its translation."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The words of a side, most frequent first. The number behind the last is of every unknown word."""

    words: tuple[str, ...]

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> "Vocabulary":
        """All words of the sentences."""
        count = Counter(word for sentence in sentences for word in sentence)
        return cls(tuple(sorted(count, key=lambda word: (-count[word], word))))

    @property
    def unknown(self) -> int:
        return len(self.words)

    def numbered(self, sentences: Sequence[Sequence[str]]) -> "Sentences":
        """Sentences of these words as one side of a bitext."""
        return Sentences.of([list(map(self.number, each)) for each in sentences], len(self.words))

    def number(self, word: str) -> int:
        """A word's number."""
        return self._numbers.get(word, len(self.words))


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
        size_S = np.fromiter((len(sentence) for sentence in sentences), np.int64, len(sentences))
        word_N = np.fromiter(chain.from_iterable(sentences), np.int32, int(size_S.sum()))
        return cls(word_N, np.concatenate([[0], np.cumsum(size_S)]), num_words)

    @property
    def size_S(self) -> Offsets:
        """Words of each sentence."""
        return np.diff(self.first_S)


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
        return Bitext(self.target, self.source)


def number_pairs(pairs: Sequence[WordPair]) -> tuple[Bitext, Vocabulary, Vocabulary]:
    """Words as numbers of the vocabularies that they make."""
    vocabularies = [Vocabulary.of(pair[side] for pair in pairs) for side in (0, 1)]
    sides = [own.numbered([pair[side] for pair in pairs]) for side, own in enumerate(vocabularies)]
    return Bitext(*sides), vocabularies[0], vocabularies[1]


class Links(NamedTuple):
    """All possible links of a bitext, and the distinct pairs of words that they link."""

    pair_L: Ids
    first_S: Offsets
    """[S + 1]: the first link of each sentence pair, and the end."""
    source_size_S: Offsets
    target_size_S: Offsets
    first_V: Offsets
    """[V + 1]: the first pair of each source word, of NULL behind them, and the end."""
    target_P: Ids
    num_target_words: int

    @classmethod
    def of(cls, bitext: Bitext) -> "Links":
        """Numbers the pairs of a bitext."""
        source, target = bitext.source, bitext.target
        first_S = np.concatenate([[0], np.cumsum((source.size_S + 1) * target.size_S)])
        # The places of all words, sorted by word.
        place_N = np.argsort(source.word_N, kind="stable")
        first_V = np.concatenate([[0], np.cumsum(np.bincount(source.word_N, minlength=source.num_words))])
        sentence_N = np.repeat(np.arange(len(bitext), dtype=np.int32), source.size_S)
        pair_L = np.empty(int(first_S[-1]), np.int32)
        pairs_V = np.zeros(source.num_words + 2, np.int64)
        arrays = (place_N, first_V, sentence_N, source.first_S, target.word_N, target.first_S, first_S)
        target_P = _number(*arrays, target.num_words, pairs_V, pair_L)
        return cls(pair_L, first_S, source.size_S, target.size_S, pairs_V, target_P, target.num_words)

    @property
    def source_P(self) -> Ids:
        """The source word of each pair; NULL is the number behind the last word's."""
        return np.repeat(np.arange(len(self.first_V) - 1, dtype=np.int32), np.diff(self.first_V))


@njit(cache=True, nogil=True)
def _number(
    place_N: NDArray[np.int64],
    first_V: Offsets,
    sentence_N: Ids,
    source_first_S: Offsets,
    target_N: Ids,
    target_first_S: Offsets,
    first_S: Offsets,
    num_targets: int,
    pairs_V: Offsets,
    pair_L: Ids,
) -> Ids:
    """Fills `pairs_V` and `pair_L`; returns the target word of each pair.

    One source word after the other: its target words are stamped with it when they are first seen.
    """
    num_sources, num_sentences = len(first_V) - 1, len(first_S) - 1
    stamp = np.full(num_targets, -1, np.int64)
    number = np.zeros(num_targets, np.int64)
    seen = np.empty(num_targets, np.int32)
    target_P = np.empty(1024, np.int32)
    total = 0
    for word in range(num_sources + 1):
        null = word == num_sources
        begin = 0 if null else first_V[word]
        end = num_sentences if null else first_V[word + 1]
        count = 0
        for place in range(begin, end):
            sentence = place if null else sentence_N[place_N[place]]
            for target in target_N[target_first_S[sentence] : target_first_S[sentence + 1]]:
                if stamp[target] != word:
                    stamp[target] = word
                    seen[count] = target
                    count += 1
        if total + count > len(target_P):
            larger = np.empty(max(total + count, 2 * len(target_P)), np.int32)
            larger[:total] = target_P[:total]
            target_P = larger
        target_P[total : total + count] = np.sort(seen[:count])
        for place in range(total, total + count):
            number[target_P[place]] = place
        for place in range(begin, end):
            sentence = place if null else sentence_N[place_N[place]]
            width = source_first_S[sentence + 1] - source_first_S[sentence] + 1
            link = first_S[sentence]
            if not null:
                link += place_N[place] - source_first_S[sentence] + 1
            for target in target_N[target_first_S[sentence] : target_first_S[sentence + 1]]:
                pair_L[link] = number[target]
                link += width
        total += count
        pairs_V[word + 1] = total
    return target_P[:total].copy()
