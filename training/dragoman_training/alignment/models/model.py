"""What all models have in common: a step of training, and the posteriors of links.

A model has its own parameters but not the lexicon, which goes from one model to the next.

Shapes: P distinct word pairs, L links, N source and U target words of the bitext.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Bitext, Ids
from dragoman_training.alignment.corpus.cooccurrence import Cooccurrence
from dragoman_training.alignment.lexicon import Numbers

Posteriors = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Direction:
    """A bitext in one direction, and its links."""

    bitext: Bitext
    cooccurrence: Cooccurrence
    source_N: Ids
    """Words by their numbers in the model's vocabulary, which are the bitext's own in training."""
    target_U: Ids

    @classmethod
    def of(cls, bitext: Bitext) -> "Direction":
        """Finds the links of a bitext that a model is trained on."""
        return cls(bitext, Cooccurrence.of(bitext), bitext.source.word_N, bitext.target.word_N)

    @classmethod
    def of_text(cls, bitext: Bitext, source_number: Ids, target_number: Ids) -> "Direction":
        """Of a text whose words have these numbers in the model's vocabularies."""
        words = source_number[bitext.source.word_N], target_number[bitext.target.word_N]
        return cls(bitext, Cooccurrence.of(bitext), *words)


@dataclass(frozen=True, eq=False, kw_only=True)
class Step:
    """An expectation step under a model and a lexicon."""

    pair_P: Numbers
    """Expected counts of word pairs."""
    posterior_L: Posteriors
    log_likelihood: float
    """In nats; where not all alignments are summed, of those that are."""
    next: "Model"
    """The model whose own parameters make the expected counts likelier."""


class Model(Protocol):
    """One of the alignment models."""

    def step(self, direction: Direction, lexicon_P: Numbers) -> Step:
        """Expectation, and maximisation of all but the lexicon."""
        ...

    def posteriors(self, direction: Direction, lexicon_P: Numbers) -> Posteriors:
        """P(a_j = i | f, e) of every link. [L]"""
        ...

    def viterbi(self, direction: Direction, lexicon_P: Numbers) -> Ids:
        """The likeliest alignment: of each target word the source position, or 0 for NULL. [U]"""
        ...

    def arrays(self) -> Arrays:
        """The parameters, to be saved."""
        ...

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """The same model from them."""
        ...


def likeliest(cooccurrence: Cooccurrence, posterior_L: Posteriors) -> Ids:
    """The likeliest source position of each target word, or 0 for NULL; of equals the first. [U]"""
    widths_U = np.repeat(cooccurrence.source_size_S + 1, cooccurrence.target_size_S)
    return _likeliest(posterior_L, widths_U)


@njit(cache=True, nogil=True)
def _likeliest(posterior_L: Posteriors, widths_U: NDArray[np.int64]) -> Ids:
    result_U = np.empty(len(widths_U), np.int32)
    link = 0
    for word in range(len(widths_U)):
        best = 0
        for i in range(widths_U[word]):
            if posterior_L[link + i] > posterior_L[link + best]:
                best = i
        result_U[word] = best
        link += widths_U[word]
    return result_U
