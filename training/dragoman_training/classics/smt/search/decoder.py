"""Sentences of word numbers to translations, with what each feature says of them.

Shapes: F features.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman_training.classics.smt.language_model.model import LanguageModel
from dragoman_training.classics.smt.phrases.table import SCORES, PhraseTable
from dragoman_training.classics.smt.search.features import FEATURES, Vector, Weights
from dragoman_training.classics.smt.search.nbest import best_ways
from dragoman_training.classics.smt.search.options import Options, collect_options
from dragoman_training.classics.smt.search.stacks import MAX_DISTORTION, NOTHING, search


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How far the search goes."""

    stack_size: int = 100
    """Hypotheses kept for each number of translated words."""
    max_options: int = 20
    """Translations considered of each source phrase."""
    distortion_limit: int = 6
    """The farthest jump between source phrases, in words; 0 translates from left to right."""

    def __post_init__(self) -> None:
        if self.stack_size < 1 or self.max_options < 1:
            raise ValueError(
                f"a stack of {self.stack_size}, {self.max_options} translations of a phrase: 1 is the least"
            )
        if not 0 <= self.distortion_limit <= MAX_DISTORTION:
            raise ValueError(
                f"a distortion limit of {self.distortion_limit}: it is from 0 to {MAX_DISTORTION}"
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class Derivation:
    """A translation, and how it came about."""

    score: float
    words: tuple[int | str, ...]
    """Numbers of target words, and source words that were passed through."""
    phrases: tuple[tuple[int, int, int], ...]
    """In the order of the translation: first source word, the one behind the last, number of target words."""
    features_F: Vector
    """In the order of `FEATURES`, without passing through."""


@dataclass(frozen=True, eq=False, kw_only=True)
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
        options = collect_options(
            self.table, self.language_model, self.weights, numbers, self.options.max_options
        )
        graph = search(
            options,
            self.language_model.automaton,
            self.language_model.begin_state,
            self.language_model.end,
            self.weights.language_model,
            self.weights.distortion,
            self.options.stack_size,
            self.options.distortion_limit,
        )
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
