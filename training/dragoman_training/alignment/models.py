"""What an alignment model is, and those whose words do not depend on each other: IBM models 1 and 2.

A model has its own parameters but not the lexicon, which goes from one model to the next. Where a target word
comes from is q(i|j,l,m), a table for each pair of lengths: all alike in model 1 (Brown et al. 1993, section
4.1), learnt in model 2 (section 4.2), and with the diagonal of Dyer et al. 2013 from two numbers, how likely
NULL is and how steep λ.

Shapes: P distinct word pairs, L links, S sentence pairs, N source and U target words of the bitext, H
distinct shapes (pairs of lengths), Q positions: of each shape a matrix [m, l + 1], NULL first.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, ClassVar, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.bitext import Bitext, Ids, Links, Numbers, Offsets

Posteriors = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]
MIN_TENSION, MAX_TENSION = 0.0, 50.0
NUM_STEPS = 8
"""Newton's steps of the diagonal's maximisation."""


@dataclass(frozen=True, eq=False)
class Direction:
    """A bitext in one direction, and its links."""

    bitext: Bitext
    links: Links
    source_N: Ids
    """Words by their numbers in the model's vocabulary, which are the bitext's own in training."""
    target_U: Ids

    @classmethod
    def of(cls, bitext: Bitext, numbers: Sequence[Ids] = ()) -> "Direction":
        """The links of a bitext, whose words have `numbers` in a model's vocabularies, or else their own."""
        words = bitext.source.word_N, bitext.target.word_N
        if numbers:
            words = numbers[0][words[0]], numbers[1][words[1]]
        return cls(bitext, Links.of(bitext), *words)

    @cached_property
    def shapes(self) -> "Shapes":
        """The pairs of lengths of its sentences."""
        return Shapes.of(self.links)


@dataclass(frozen=True, eq=False)
class Step:
    """An expectation step under a model and a lexicon."""

    pair_P: Numbers
    posterior_L: Posteriors
    log_likelihood: float
    """The log-likelihood in nats; where not all alignments are summed, of those that are."""
    next: "Model"
    """The model whose own parameters make the expected counts likelier."""


class Model(ABC):
    """One of the alignment models."""

    KIND: ClassVar[str]
    """The name under which it is saved."""
    SAVED: ClassVar[Mapping[str, str]] = {}
    """The names under which parameters are saved, and the fields that hold these."""

    @classmethod
    @abstractmethod
    def after(cls, before: "Model | None", direction: Direction, lexicon_P: Numbers) -> "Model":
        """A model to begin training with; `before` is the one trained before it."""

    @abstractmethod
    def step(self, direction: Direction, lexicon_P: Numbers) -> Step:
        """Expectation, and maximisation of all but the lexicon."""

    @abstractmethod
    def posteriors(self, direction: Direction, lexicon_P: Numbers) -> Posteriors:
        """P(a_j = i | f, e) of every link. [L]"""

    def viterbi(self, direction: Direction, lexicon_P: Numbers) -> Ids:
        """The likeliest alignment: of each target word the source position, or 0 for NULL. [U]"""
        # Each word's likeliest where the words do not depend on each other.
        return likeliest(direction.links, self.posteriors(direction, lexicon_P))

    def arrays(self) -> Arrays:
        """The parameters, to be saved."""
        return {name: np.asarray(getattr(self, field)) for name, field in self.SAVED.items()}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """The model that `arrays` saved."""
        found = {field: arrays[name] for name, field in cls.SAVED.items()}
        return cls(**{field: array if array.ndim else float(array) for field, array in found.items()})


def model_kind(kind: str) -> type[Model]:
    """The class of a model by the name under which it is saved. Raises KeyError where there is none."""
    found: type[Model] = entry_points(group="dragoman.alignment_models")[kind].load()
    return found


def likeliest(links: Links, posterior_L: Posteriors) -> Ids:
    """The likeliest source position of each target word, or 0 for NULL; of equals the first. [U]"""
    return _likeliest(posterior_L, np.repeat(links.source_size_S + 1, links.target_size_S))


@njit(cache=True, nogil=True)
def _likeliest(posterior_L: Posteriors, widths_U: Offsets) -> Ids:
    result_U = np.empty(len(widths_U), np.int32)
    link = 0
    for word in range(len(widths_U)):
        result_U[word] = np.argmax(posterior_L[link : link + widths_U[word]])
        link += widths_U[word]
    return result_U


@dataclass(frozen=True, eq=False)
class Shapes:
    """The distinct pairs of lengths in a bitext."""

    source_size_H: Offsets
    target_size_H: Offsets
    first_H: Offsets
    """[H + 1]: where the matrix of each begins, and the end."""
    shape_S: Offsets
    """The number of each sentence pair's."""
    row_Q: Offsets
    """The row of each position: those of one target position sum to one."""
    column_Q: Offsets
    """The source position, numbered over all shapes."""
    null_Q: NDArray[np.bool_]
    distance_Q: Numbers
    """|i / l - j / m| (eq. 1 of Dyer et al. with its sign turned)."""

    @classmethod
    def of(cls, links: Links) -> "Shapes":
        """The shapes of a bitext's sentence pairs."""
        sizes_S2 = np.stack([links.source_size_S, links.target_size_S], axis=1)
        sizes_H2, shape_S = np.unique(sizes_S2.reshape(-1, 2), axis=0, return_inverse=True)
        size_H, length_H = sizes_H2.T
        first_H = np.concatenate([[0], np.cumsum((size_H + 1) * length_H)])
        row_Q = np.repeat(np.arange(int(length_H.sum())), np.repeat(size_H + 1, length_H))
        shape_Q = np.repeat(np.arange(len(size_H)), np.diff(first_H))
        size_Q, length_Q = size_H[shape_Q], length_H[shape_Q]
        j_Q, i_Q = np.divmod(np.arange(int(first_H[-1])) - first_H[shape_Q], size_Q + 1)
        column_Q = np.concatenate([[0], np.cumsum(size_H + 1)])[shape_Q] + i_Q
        distance_Q = np.abs(i_Q / np.maximum(size_Q, 1) - (j_Q + 1) / length_Q)
        return cls(size_H, length_H, first_H, shape_S.reshape(-1), row_Q, column_Q, i_Q == 0, distance_Q)


def normalize(value_Q: Numbers, group_Q: Offsets) -> Numbers:
    """Values that sum to one in each group."""
    total = np.bincount(group_Q, weights=value_Q)
    return np.asarray(value_Q / np.maximum(total, 1e-300)[group_Q])


class PositionModel(Model):
    """A model whose words come from where they do without regard to each other."""

    @classmethod
    def after(cls, before: Model | None, direction: Direction, lexicon_P: Numbers) -> "Model":
        return cls()

    @abstractmethod
    def positions(self, shapes: Shapes) -> Numbers:
        """q(i|j,l,m). [Q]"""

    @abstractmethod
    def estimated(self, shapes: Shapes, count_Q: Numbers) -> "PositionModel":
        """The model with the likeliest parameters for expected counts of positions."""

    def step(self, direction: Direction, lexicon_P: Numbers) -> Step:
        """Exact: expected counts (eq. 25 to 29) and log-likelihood (eq. 21) of all alignments."""
        shapes = direction.shapes
        position_Q, first_S = self.positions(shapes), shapes.first_H[shapes.shape_S]
        pair_P, count_Q, posterior_L, log_likelihood = expect(direction.links, lexicon_P, position_Q, first_S)
        return Step(pair_P, posterior_L, log_likelihood, self.estimated(shapes, count_Q))

    def posteriors(self, direction: Direction, lexicon_P: Numbers) -> Posteriors:
        shapes = direction.shapes
        first_S = shapes.first_H[shapes.shape_S]
        return expect(direction.links, lexicon_P, self.positions(shapes), first_S)[2]


@njit(cache=True, nogil=True)
def expect(
    links: Links, lexicon_P: Numbers, position_Q: Numbers, first_position_S: Offsets
) -> tuple[Numbers, Numbers, Posteriors, float]:
    """Expected counts of pairs and positions, posteriors [L], and the log-likelihood."""
    count_P, count_Q = np.zeros(len(lexicon_P)), np.zeros(len(position_Q))
    posterior_L = np.empty(len(links.pair_L), np.float32)
    log_likelihood = 0.0
    for sentence in range(len(links.source_size_S)):
        width = links.source_size_S[sentence] + 1
        for target in range(links.target_size_S[sentence]):
            link = links.first_S[sentence] + target * width
            place = first_position_S[sentence] + target * width
            total = 0.0
            for i in range(width):
                total += lexicon_P[links.pair_L[link + i]] * position_Q[place + i]
            # Rounding leaves nothing of what is too unlikely; then all are alike.
            if total <= 0:
                total = 1e-300
            log_likelihood += np.log(total)
            for i in range(width):
                share = lexicon_P[links.pair_L[link + i]] * position_Q[place + i] / total
                count_P[links.pair_L[link + i]] += share
                count_Q[place + i] += share
                posterior_L[link + i] = share
    return count_P, count_Q, posterior_L, log_likelihood


class Model1(PositionModel):
    """Brown et al. 1993, section 4.1. It has no parameters but the lexicon."""

    KIND = "ibm1"

    def positions(self, shapes: Shapes) -> Numbers:
        widths_H = shapes.source_size_H + 1
        return np.repeat(1 / widths_H, widths_H * shapes.target_size_H)

    def estimated(self, shapes: Shapes, count_Q: Numbers) -> "Model1":
        return self


@dataclass(frozen=True)
class DiagonalModel(PositionModel):
    """Model 2 with the diagonal of Dyer et al. 2013, section 2."""

    KIND = "ibm2-diagonal"
    SAVED: ClassVar = {"null": "null", "tension": "tension"}

    null: float = 0.08
    """p0."""
    tension: float = 4.0
    """λ."""

    def positions(self, shapes: Shapes) -> Numbers:
        """The δ of the paper. [Q]"""
        return np.where(shapes.null_Q, self.null, (1 - self.null) * self._share(shapes, self.tension))

    def estimated(self, shapes: Shapes, count_Q: Numbers) -> "DiagonalModel":
        """Both numbers, the likeliest, as λ's likelihood is concave."""
        linked_Q = np.where(shapes.null_Q, 0, count_Q)
        linked = np.bincount(shapes.row_Q, weights=linked_Q)
        observed = float((linked_Q * shapes.distance_Q).sum())
        tension = self.tension
        for _ in range(NUM_STEPS):
            share_Q = self._share(shapes, tension)
            mean = np.bincount(shapes.row_Q, weights=share_Q * shapes.distance_Q)
            square = np.bincount(shapes.row_Q, weights=share_Q * shapes.distance_Q**2)
            slope = float((linked * mean).sum()) - observed
            bend = float((linked * (square - mean**2)).sum())
            if bend <= 0:
                break
            tension = min(max(tension + slope / bend, MIN_TENSION), MAX_TENSION)
        total = float(count_Q.sum())
        null = float(count_Q[shapes.null_Q].sum()) / total if total else self.null
        return DiagonalModel(null=null, tension=tension)

    @staticmethod
    def _share(shapes: Shapes, tension: float) -> Numbers:
        """exp(-λ distance), normalised over the source positions but NULL."""
        weight_Q = np.where(shapes.null_Q, 0, np.exp(-tension * shapes.distance_Q))
        return normalize(weight_Q, shapes.row_Q)
