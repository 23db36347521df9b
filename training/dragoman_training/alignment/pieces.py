"""Tables and links over a model's tokens: which source piece a target piece comes from, and how probably.

Shapes: P distinct pairs of pieces, V source pieces and NULL; of a pair I and J words, T and U tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from dragoman_bundle.tokenizers.tokenizer import TokenizedText, Tokenizer
from numpy.typing import NDArray

from dragoman_training.alignment.aligner import Aligner
from dragoman_training.alignment.bitext import Ids, Numbers, WordRule
from dragoman_training.alignment.training import Iteration, TrainingOptions, train_aligner
from dragoman_training.data.corpus import Corpus


@dataclass(frozen=True, eq=False, kw_only=True)
class TranslationTable:
    """t(target | source), sparse. The rows are the source pieces by their ids, and then NULL."""

    first_V: NDArray[np.int64]
    """[V + 1]: where each row begins in the two below, and the end."""
    target_P: NDArray[np.int32]
    """Target pieces, likeliest first in each row; of equally likely ones the one with the lower id."""
    probability_P: NDArray[np.float64]

    @classmethod
    def from_pairs(
        cls, source_P: Ids, target_P: Ids, probability_P: Numbers, *, source_vocabulary: int
    ) -> "TranslationTable":
        """Sorts pairs, in any order, into rows; the source piece `source_vocabulary` is NULL."""
        order = np.lexsort((target_P, -probability_P, source_P))
        sizes = np.bincount(source_P, minlength=source_vocabulary + 1)
        first_V = np.concatenate([[0], np.cumsum(sizes)])
        return cls(first_V=first_V, target_P=target_P[order], probability_P=probability_P[order])

    @property
    def null(self) -> int:
        return len(self.first_V) - 2

    def row(self, source: int) -> dict[int, float]:
        """A source piece's targets with their probabilities, likeliest first."""
        run = slice(self.first_V[source], self.first_V[source + 1])
        return dict(zip(self.target_P[run].tolist(), self.probability_P[run].tolist(), strict=True))

    def prune(self, *, max_targets: int, min_probability: float) -> "TranslationTable":
        """The `max_targets` likeliest of each row, without those less likely than `min_probability`."""
        sizes = np.diff(self.first_V)
        rank_P = np.arange(len(self.target_P)) - np.repeat(self.first_V[:-1], sizes)
        kept_P = (rank_P < max_targets) & (self.probability_P >= min_probability)
        num_kept_before = np.concatenate([[0], np.cumsum(kept_P)])
        first_V, target_P = num_kept_before[self.first_V], self.target_P[kept_P]
        return replace(self, first_V=first_V, target_P=target_P, probability_P=self.probability_P[kept_P])


NUM_ITERATIONS = 6
"""Passes of expectation maximisation over model 1."""
BLOCK_PAIRS = 5_000
"""Sentence pairs that are aligned at once."""
MIN_BELIEF = 1e-3
"""Links that are believed in less are not counted."""

Pair = tuple[Sequence[int], Sequence[int]]
TokenLinks = NDArray[np.int32]
"""[links, 2]: source and target position, from 0 on."""


def learn_table(
    pairs: Sequence[Pair],
    *,
    source_vocabulary: int,
    report: Callable[[Iteration], None] = lambda iteration: None,
) -> TranslationTable:
    """t(target | source) of pairs of token ids by IBM model 1 (Brown et al. 1993, section 4.1).

    Raises ValueError where no pair has tokens on both sides.
    """
    aligner = _train_on_tokens(pairs, "ibm1", (NUM_ITERATIONS,), report)
    lexicon = aligner.forward.lexicon
    # NULL's row is behind the last word's.
    source_V = np.array([*map(int, aligner.forward.source.words), source_vocabulary], np.int32)
    target_V = np.array([int(word) for word in aligner.forward.target.words], np.int32)
    pairs_P = np.repeat(source_V, np.diff(lexicon.first_V)), target_V[lexicon.target_P]
    probability_P = lexicon.probability_P.astype(np.float64)
    return TranslationTable.from_pairs(*pairs_P, probability_P, source_vocabulary=source_vocabulary)


class TokenLinker:
    """Links tokens by an HMM in both directions. The same training pairs give the same links."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._aligner = _train_on_tokens(pairs, "hmm")

    def __call__(self, pairs: Sequence[Pair]) -> list[TokenLinks]:
        """The links of each of some pairs, of which none need be among those learnt from."""
        matrices = self._aligner.align(_as_words(pairs), "grow-diag-final-and")
        return [np.argwhere(matrix).astype(np.int32) for matrix in matrices]


def _train_on_tokens(
    pairs: Sequence[Pair],
    model: str,
    iterations: Sequence[int] = (),
    report: Callable[[Iteration], None] = lambda iteration: None,
) -> Aligner:
    longest = max((max(map(len, pair)) for pair in pairs), default=1)
    # Numbers of tokens are not spelt.
    options = TrainingOptions(model=model, iterations=iterations, spelling=0, max_words=max(1, longest))
    return train_aligner(_as_words(pairs), options, WordRule(lowercase=False), report)


def _as_words(pairs: Sequence[Pair]) -> list[tuple[list[str], list[str]]]:
    """Tokens as the words that an aligner takes. Equal ones are one object: there are few, in long texts."""
    words: dict[int, str] = {}

    def side(tokens: Sequence[int]) -> list[str]:
        return [words.setdefault(token, str(token)) for token in tokens]

    return [(side(one), side(other)) for one, other in pairs]


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

    Pairs with a side of more than `max_tokens` are left out. `report` gets how many are done. Raises
    ValueError where the corpus is rather of the aligner's other direction.
    """
    key_P, count_P = np.empty(0, np.int64), np.empty(0)
    for first in range(0, len(corpus), BLOCK_PAIRS):
        run = slice(first, first + BLOCK_PAIRS)
        sides = corpus.sources[run], corpus.targets[run]
        encoded = zip(map(source.encode, sides[0]), map(target.encode, sides[1]), strict=True)
        tokens = [pair for pair in encoded if max(len(side.ids) for side in pair) <= max_tokens]
        rule = aligner.rule
        words = [(rule.normalize(one.text), rule.normalize(other.text)) for one, other in tokens]
        if not first and aligner.swapped(words):
            raise ValueError(
                "the aligner's source language is the model's target language, and the reverse: train one of "
                "the model's direction"
            )
        keys, weights = [key_P], [count_P]
        for (one, other), (belief_IJ, _) in zip(tokens, aligner.believed(words, "forward"), strict=True):
            token_T, word_T = _words_of_tokens(one, rule.spans(one.text))
            token_U, word_U = _words_of_tokens(other, rule.spans(other.text))
            belief_TU = belief_IJ[np.ix_(word_T, word_U)]
            from_, to = np.nonzero(belief_TU >= MIN_BELIEF)
            keys.append(token_T[from_] * target.vocabulary_size + token_U[to])
            weights.append(belief_TU[from_, to].astype(np.float64))
        # The sum of each distinct pair so far, by ascending key.
        key_P, place = np.unique(np.concatenate(keys), return_inverse=True)
        count_P = np.bincount(place, np.concatenate(weights), len(key_P)).astype(np.float64)
        report(min(first + BLOCK_PAIRS, len(corpus)))
    source_P, target_P = np.divmod(key_P, target.vocabulary_size)
    size = source.vocabulary_size
    total_V = np.bincount(source_P, weights=count_P, minlength=size + 1)
    pairs_P = source_P.astype(np.int32), target_P.astype(np.int32)
    return TranslationTable.from_pairs(*pairs_P, count_P / total_V[source_P], source_vocabulary=size)


def _words_of_tokens(
    text: TokenizedText, words: Sequence[tuple[int, int]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tokens, each with a word that it stands in, once for each; a space alone is of the word behind it."""
    tokens: list[int] = []
    numbers: list[int] = []
    first = 0
    for token, (start, end) in zip(text.ids, text.spans, strict=True):
        while first < len(words) and words[first][1] <= start:
            first += 1
        last = first
        while last < len(words) and (last == first or words[last][0] < end):
            last += 1
        tokens += [token] * (last - first)
        numbers += range(first, last)
    return np.array(tokens, np.int64), np.array(numbers, np.int64)
