"""A saved n-gram model as an automaton: its states are the contexts that tell anything of the next word.

Shapes: T nodes, one for each n-gram.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Ids, Offsets
from dragoman_training.classics.smt.trie import ROOT, Trie, find_child

Logs = NDArray[np.float64]


class Automaton(NamedTuple):
    """The model as the search reads it."""

    word_T: Ids
    first_T: Offsets
    log_probability_T: Logs
    """Of the last word of the n-gram, given those before it."""
    log_backoff_T: Logs
    """Added where the n-gram is a context that the next word was not seen in."""
    suffix_T: Offsets
    """The n-gram without its first word."""
    state_T: Offsets
    """The longest end of the n-gram that is the context of any."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LanguageModel:
    """An interpolated model in the form of one with back-off."""

    order: int
    num_words: int
    """Words of the vocabulary. Behind them are the unknown word, the sentence's end and its beginning."""
    automaton: Automaton

    @property
    def unknown(self) -> int:
        """The word that stands for all that are not in the vocabulary."""
        return self.num_words

    @property
    def end(self) -> int:
        """The word behind a sentence."""
        return self.num_words + 1

    @property
    def begin_state(self) -> int:
        """The state before a sentence."""
        return int(self.automaton.state_T[self.num_words + 3])

    def log_probability(self, sentence: Ids) -> float:
        """Of a sentence and its end."""
        return float(_sentence(self.automaton, self.begin_state, self.end, sentence))

    def perplexity(self, sentences: Sequence[Ids]) -> float:
        """Of words and sentences' ends."""
        total = sum(map(self.log_probability, sentences))
        return float(np.exp(-total / sum(len(sentence) + 1 for sentence in sentences)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is saved."""
        shape = np.array([self.order, self.num_words])
        automaton = self.automaton
        return {
            "shape": shape,
            "word": automaton.word_T,
            "first": automaton.first_T,
            "log_probability": automaton.log_probability_T.astype(np.float32),
            "log_backoff": automaton.log_backoff_T.astype(np.float32),
            "suffix": automaton.suffix_T,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "LanguageModel":
        """What was saved."""
        order, num_words = arrays["shape"].tolist()
        return language_model(
            order,
            num_words,
            Trie(word_T=arrays["word"], first_T=arrays["first"]),
            arrays["log_probability"].astype(np.float64),
            arrays["log_backoff"].astype(np.float64),
            arrays["suffix"],
        )


def language_model(
    order: int,
    num_words: int,
    trie: Trie,
    log_probability_T: Logs,
    log_backoff_T: Logs,
    suffix_T: Offsets,
) -> LanguageModel:
    """Adds to the n-grams the states that they lead to."""
    useful_T = np.diff(trie.first_T) > 0
    state_T = np.arange(len(trie))
    # A node's suffix comes before it.
    _find_states(useful_T, suffix_T, state_T)
    automaton = Automaton(trie.word_T, trie.first_T, log_probability_T, log_backoff_T, suffix_T, state_T)
    return LanguageModel(order=order, num_words=num_words, automaton=automaton)


@njit(cache=True, nogil=True)
def _find_states(useful_T: NDArray[np.bool_], suffix_T: Offsets, state_T: Offsets) -> None:
    for node in range(1, len(state_T)):
        if not useful_T[node]:
            state_T[node] = state_T[suffix_T[node]]


@njit(cache=True, nogil=True)
def advance(automaton: Automaton, state: int, word: int) -> tuple[float, int]:
    """The log-probability of a word in a state, and the state behind it."""
    log = 0.0
    node = state
    while True:
        child = find_child(automaton.word_T, automaton.first_T, node, word)
        if child >= 0:
            return log + automaton.log_probability_T[child], automaton.state_T[child]
        assert node != ROOT
        log += automaton.log_backoff_T[node]
        node = automaton.suffix_T[node]


@njit(cache=True, nogil=True)
def _sentence(automaton: Automaton, state: int, end: int, sentence: Ids) -> float:
    total = 0.0
    for word in sentence:
        log, state = advance(automaton, state, word)
        total += log
    log, state = advance(automaton, state, end)
    return total + log
