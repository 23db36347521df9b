"""Sentences of word numbers to translations, judged by a log-linear model of features (Och & Ney 2002).

score(e, f) = Σ λ_k h_k(e, f). The noisy channel is the case of two features of equal weight, the backward
phrase probability and the language model.

Shapes: F features, J source words, O options of a sentence, W words of their targets.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.bitext import Ids, Offsets
from dragoman_training.classics.smt.language_model import LanguageModel, advance
from dragoman_training.classics.smt.phrases import SCORES, PhraseTable
from dragoman_training.classics.smt.search import MAX_DISTORTION, NOTHING, Options, Scores, best_ways, search

PASSED_THROUGH = -1
"""The number of the phrase pair of a word that is passed through."""
UNKNOWN_SCORE = -100.0
"""The score of a word that is passed through, so that no other translation loses against it. It has no
weight."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """λ of each feature. As they are before tuning, all but the order of magnitude is left to it."""

    phrase: float = 0.2
    """log φ(e|f)."""
    lexical: float = 0.2
    """log lex(e|f)."""
    phrase_backward: float = 0.2
    """log φ(f|e)."""
    lexical_backward: float = 0.2
    """log lex(f|e)."""
    language_model: float = 0.5
    """log P(e)."""
    distortion: float = 0.3
    """Minus the words jumped over between source phrases."""
    words: float = -0.5
    """Minus the words of the translation: below 0, longer ones are favoured."""
    phrases: float = 0.1
    """Minus the phrases used."""

    def __post_init__(self) -> None:
        for name, weight in zip(FEATURES, self.vector().tolist(), strict=True):
            if not math.isfinite(weight):
                raise ValueError(f"the weight of {name} is {weight}: it has to be a finite number")

    def vector(self) -> Scores:
        """The weights in the order of `FEATURES`. [F]"""
        return np.array([getattr(self, field.name) for field in fields(self)], np.float64)

    @classmethod
    def of(cls, vector: Scores) -> "Weights":
        """The reverse of `vector`."""
        return cls(**dict(zip(FEATURES, vector.tolist(), strict=True)))


FEATURES = tuple(field.name for field in fields(Weights))


def parse_weights(text: str, names: Sequence[str]) -> dict[str, float]:
    """Weights written as `name=number,…`; features that are not named have none. Raises ValueError."""
    given = dict.fromkeys(names, 0.0)
    for part in text.split(","):
        name, _, number = map(str.strip, part.partition("="))
        with suppress(ValueError):
            if name in given and math.isfinite(float(number)):
                given[name] = float(number)
                continue
        wanted = f"no NAME=NUMBER of a finite number; names are {', '.join(names)}"
        raise ValueError(f"--weights: {part!r} is {wanted}")
    return given


def collect_options(
    table: PhraseTable,
    language_model: LanguageModel,
    weights: Weights,
    sentence: Sequence[int],
    max_options: int,
) -> Options:
    """The best pairs of each phrase of the sentence, and words without any as they are."""
    tm = weights.vector()[:4]
    starts, ends, pairs = [], [], []
    for start in range(len(sentence)):
        spans = table.spans(sentence, start)
        if not spans or spans[0][0] > start + 1:
            spans.insert(0, (start + 1, PASSED_THROUGH, PASSED_THROUGH + 1))
        for end, first, behind in spans:
            starts += [start] * (behind - first)
            ends += [end] * (behind - first)
            pairs.append(np.arange(first, behind))
    start_O, end_O = np.array(starts, np.int64), np.array(ends, np.int64)
    pair_O = np.concatenate([np.zeros(0, np.int64), *pairs])
    known_O = pair_O >= 0
    known = pair_O[known_O]
    # A word that is passed through is one unknown word.
    size_O, static_O = np.ones(len(pair_O), np.int64), np.full(len(pair_O), UNKNOWN_SCORE)
    size_O[known_O], static_O[known_O] = np.diff(table.target_first_P)[known], table.scores_P4[known] @ tm
    word_first_O = np.concatenate([[0], np.cumsum(size_O)])
    word_W = np.full(int(word_first_O[-1]), language_model.num_words, np.int32)
    shift = np.repeat(table.target_first_P[known] - word_first_O[:-1][known_O], size_O[known_O])
    places = np.flatnonzero(np.repeat(known_O, size_O))
    word_W[places] = table.target_W[places + shift]
    score_O = static_O - weights.words * size_O - weights.phrases
    estimate_O, later_O = _estimate(language_model, word_first_O, word_W)
    likely_O = score_O + weights.language_model * estimate_O
    bound_O = score_O + max(weights.language_model, 0.0) * later_O
    order = np.lexsort((-likely_O, end_O, start_O))
    span_O = (start_O * (len(sentence) + 1) + end_O)[order]
    order = order[np.arange(len(order)) - np.searchsorted(span_O, span_O) < max_options]
    future_JJ = np.full((len(sentence) + 1, len(sentence) + 1), -np.inf)
    np.maximum.at(future_JJ, (start_O[order], end_O[order]), likely_O[order])
    _fill(future_JJ)
    size_O = size_O[order]
    first_O = np.concatenate([[0], np.cumsum(size_O)])
    place_W = np.arange(first_O[-1]) + np.repeat(word_first_O[:-1][order] - first_O[:-1], size_O)
    return Options(
        first_J=np.searchsorted(start_O[order], np.arange(len(sentence) + 1)),
        start_O=start_O[order],
        end_O=end_O[order],
        pair_O=pair_O[order],
        score_O=score_O[order],
        bound_O=bound_O[order],
        word_first_O=first_O,
        word_W=word_W[place_W],
        future_JJ=future_JJ,
    )


@njit(cache=True, nogil=True)
def _estimate(model: LanguageModel, word_first_O: Offsets, word_W: Ids) -> tuple[Scores, Scores]:
    """The log-probability of each target by itself, and of its words but the first."""
    whole_O, later_O = np.zeros(len(word_first_O) - 1), np.zeros(len(word_first_O) - 1)
    for option in range(len(whole_O)):
        state, first = 0, word_first_O[option]
        for place in range(first, word_first_O[option + 1]):
            log, state = advance(model, state, word_W[place])
            whole_O[option] += log
            if place > first:
                later_O[option] += log
    return whole_O, later_O


@njit(cache=True, nogil=True)
def _fill(future_JJ: Scores) -> None:
    """Parts made of two parts."""
    num_words = len(future_JJ) - 1
    for size in range(2, num_words + 1):
        for start in range(num_words - size + 1):
            for middle in range(start + 1, start + size):
                both = future_JJ[start, middle] + future_JJ[middle, start + size]
                if both > future_JJ[start, start + size]:
                    future_JJ[start, start + size] = both


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    stack_size: int = 100
    """Hypotheses kept for each number of translated words."""
    max_options: int = 20
    """Translations considered of each source phrase."""
    distortion_limit: int = 6
    """The farthest jump between source phrases, in words; 0 translates from left to right."""

    def __post_init__(self) -> None:
        sizes, limit = (self.stack_size, self.max_options), self.distortion_limit
        if min(sizes) < 1:
            raise ValueError(f"a stack of {sizes[0]}, {sizes[1]} translations of a phrase: 1 is the least")
        if not 0 <= limit <= MAX_DISTORTION:
            raise ValueError(f"a distortion limit of {limit}: it is from 0 to {MAX_DISTORTION}")


@dataclass(frozen=True, eq=False, kw_only=True)
class Derivation:
    """A translation, and how it came about."""

    score: float
    words: tuple[int | str, ...]
    """Numbers of target words, and source words that were passed through."""
    phrases: tuple[tuple[int, int, int], ...]
    """The phrases in the order of the translation: first source word, the one behind the last, number of
    target words."""
    features_F: Scores
    """The features in the order of `FEATURES`, without passing through."""


@dataclass(frozen=True, eq=False)
class Decoder:
    """Phrases, a language model, and the weights of their features."""

    table: PhraseTable
    language_model: LanguageModel
    weights: Weights
    options: SearchOptions

    def decode(self, words: Sequence[str], numbers: Sequence[int], num_best: int = 1) -> list[Derivation]:
        """The best translations of a sentence, no two of the same words, the best first."""
        if not numbers:
            return [Derivation(score=0.0, words=(), phrases=(), features_F=np.zeros(len(FEATURES)))]
        model, weights, limits = self.language_model, self.weights, self.options
        options = collect_options(self.table, model, weights, numbers, limits.max_options)
        scales = weights.language_model, weights.distortion
        graph = search(options, model, *scales, limits.stack_size, limits.distortion_limit)
        assert graph.best != NOTHING
        first_of: dict[str, int] = {}
        same_J = np.array([first_of.setdefault(word, place) for place, word in enumerate(words)])
        ways, scores = best_ways(graph, options, same_J, num_best)
        return [self._derivation(score, way, words, options) for way, score in zip(ways, scores, strict=True)]

    def _derivation(
        self, score: float, way: NDArray[np.int64], words: Sequence[str], options: Options
    ) -> Derivation:
        """What a way through the graph says."""
        target: list[int | str] = []
        numbers: list[int] = []
        phrases = []
        distortion = last_end = 0
        for option in way.tolist():
            start, end = int(options.start_O[option]), int(options.end_O[option])
            own = options.word_W[options.word_first_O[option] : options.word_first_O[option + 1]].tolist()
            numbers += own
            target += own if options.pair_O[option] >= 0 else [words[start]]
            phrases.append((start, end, len(own)))
            distortion += abs(start - last_end)
            last_end = end
        pairs = options.pair_O[way]
        scores = self.table.scores_P4[pairs[pairs >= 0]].sum(axis=0, dtype=np.float64)
        log_probability = self.language_model.log_probability(np.array(numbers, np.int32))
        features_F = np.array([*scores, log_probability, -distortion, -len(target), -len(way)])
        assert FEATURES[: len(SCORES)] == SCORES
        return Derivation(score=score, words=tuple(target), phrases=tuple(phrases), features_F=features_F)
