"""A table over a model's tokens, out of the links between words that a saved aligner finds.

Shapes: I source and J target words of a pair, T and U their tokens, P distinct pairs of tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from dragoman_bundle.tokenizers.tokenizer import TokenizedText, Tokenizer
from numpy.typing import NDArray

from dragoman_training.alignment.aligner import Aligner
from dragoman_training.alignment.pieces.table import TranslationTable
from dragoman_training.data.corpus import Corpus

BLOCK_PAIRS = 5_000
"""Sentence pairs that are aligned at once."""
MIN_BELIEF = 1e-3
"""Links that are believed in less are not counted."""

Span = tuple[int, int]


@dataclass(frozen=True, eq=False)
class _Counts:
    """How often tokens of each distinct pair come from each other, by ascending key."""

    key_P: NDArray[np.int64]
    count_P: NDArray[np.float64]

    def plus(self, key_N: NDArray[np.int64], count_N: NDArray[np.float64]) -> "_Counts":
        key_P, place = np.unique(np.concatenate([self.key_P, key_N]), return_inverse=True)
        count_P = np.bincount(place, np.concatenate([self.count_P, count_N]), len(key_P))
        return _Counts(key_P, count_P.astype(np.float64))


def count_links(
    aligner: Aligner,
    corpus: Corpus,
    source: Tokenizer,
    target: Tokenizer,
    *,
    max_tokens: int,
    report: Callable[[int], None] = lambda number: None,
) -> TranslationTable:
    """t(target token | source token): the expected links of words, each counted for all of their tokens.

    Pairs with a side of more than `max_tokens` are left out. `report` is told how many are done. Raises
    ValueError where the corpus is rather of the aligner's other direction.
    """
    counts = _Counts(np.empty(0, np.int64), np.empty(0))
    for first in range(0, len(corpus), BLOCK_PAIRS):
        run = slice(first, first + BLOCK_PAIRS)
        sides = corpus.sources[run], corpus.targets[run]
        tokens = [
            (one, other)
            for one, other in zip(map(source.encode, sides[0]), map(target.encode, sides[1]), strict=True)
            if max(len(one.ids), len(other.ids)) <= max_tokens
        ]
        words = [
            (aligner.rule.normalize(one.text), aligner.rule.normalize(other.text)) for one, other in tokens
        ]
        if not first and aligner.swapped(words):
            raise ValueError(
                "the aligner's source language is the model's target language, and the reverse: train one of "
                "the model's direction"
            )
        keys, weights = [np.empty(0, np.int64)], [np.empty(0)]
        for (one, other), belief_IJ in zip(tokens, aligner.beliefs(words), strict=True):
            token_T, word_T = _words_of_tokens(one, aligner.rule.spans(one.text))
            token_U, word_U = _words_of_tokens(other, aligner.rule.spans(other.text))
            belief_TU = belief_IJ[np.ix_(word_T, word_U)]
            from_, to = np.nonzero(belief_TU >= MIN_BELIEF)
            keys.append(token_T[from_] * target.vocabulary_size + token_U[to])
            weights.append(belief_TU[from_, to].astype(np.float64))
        counts = counts.plus(np.concatenate(keys), np.concatenate(weights))
        report(min(first + BLOCK_PAIRS, len(corpus)))
    source_P, target_P = np.divmod(counts.key_P, target.vocabulary_size)
    total_V = np.bincount(source_P, weights=counts.count_P, minlength=source.vocabulary_size + 1)
    return TranslationTable.from_pairs(
        source_P.astype(np.int32),
        target_P.astype(np.int32),
        counts.count_P / total_V[source_P],
        source_vocabulary=source.vocabulary_size,
    )


def _words_of_tokens(
    text: TokenizedText, words: Sequence[Span]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens, each with a word that it stands in, once for each; a space alone is of the word behind it."""
    tokens, numbers = [], []
    first = 0
    for token, (start, end) in zip(text.ids, text.spans, strict=True):
        while first < len(words) and words[first][1] <= start:
            first += 1
        last = first
        while last < len(words) and (last == first or words[last][0] < end):
            tokens.append(token)
            numbers.append(last)
            last += 1
    return np.array(tokens, np.int64), np.array(numbers, np.int64)
