"""IBM model 2 (Brown et al. 1993, section 4.2): where a target word stands says where it comes from.

q(i|j,l,m), Brown's a(i|j,m,l), is a table of its own for each pair of lengths; the diagonal of Dyer et al.
2013 fills the same table from two numbers.

Shapes: P distinct word pairs, L links, S sentence pairs, H distinct shapes (pairs of lengths),
Q positions: of each shape a matrix [m, l + 1], NULL first.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.corpus.bitext import Ids, Offsets
from dragoman_training.alignment.corpus.cooccurrence import Cooccurrence
from dragoman_training.alignment.lexicon import Numbers


@dataclass(frozen=True, eq=False)
class Shapes:
    """The distinct pairs of lengths in a bitext."""

    source_size_H: Offsets
    target_size_H: Offsets
    first_H: Offsets
    """[H + 1]: where the matrix of each begins, and the end."""
    shape_S: NDArray[np.int64]
    """Which one each sentence pair has."""

    @classmethod
    def of(cls, cooccurrence: Cooccurrence) -> "Shapes":
        """Finds them."""
        sizes_S2 = np.stack([cooccurrence.source_size_S, cooccurrence.target_size_S], axis=1)
        sizes_H2, shape_S = np.unique(sizes_S2.reshape(-1, 2), axis=0, return_inverse=True)
        source_size_H, target_size_H = sizes_H2.T
        first_H = np.concatenate([[0], np.cumsum((source_size_H + 1) * target_size_H)])
        return cls(source_size_H, target_size_H, first_H, shape_S.reshape(-1))

    def rows_Q(self) -> NDArray[np.int64]:
        """The row of each position: those of one target position sum to one."""
        return np.repeat(
            np.arange(int(self.target_size_H.sum())), np.repeat(self.source_size_H + 1, self.target_size_H)
        )


@dataclass(frozen=True, eq=False)
class PositionTable:
    """q of the pairs of lengths that a model was trained on."""

    source_size_H: Offsets
    target_size_H: Offsets
    position_Q: Numbers

    @classmethod
    def of(cls, shapes: Shapes, position_Q: Numbers) -> "PositionTable":
        """Without the sentences."""
        return cls(shapes.source_size_H, shapes.target_size_H, position_Q)

    def positions(self, shapes: Shapes, otherwise_Q: Numbers) -> Numbers:
        """q for other sentences; pairs of lengths that the table lacks have the values of `otherwise_Q`."""
        ends = np.cumsum((self.source_size_H + 1) * self.target_size_H)
        sizes = zip(self.source_size_H.tolist(), self.target_size_H.tolist(), strict=True)
        end_by_size = dict(zip(sizes, ends.tolist(), strict=True))
        result_Q = otherwise_Q.copy()
        for shape in range(len(shapes.source_size_H)):
            first, end = shapes.first_H[shape], shapes.first_H[shape + 1]
            own = end_by_size.get((int(shapes.source_size_H[shape]), int(shapes.target_size_H[shape])))
            if own is not None:
                result_Q[first:end] = self.position_Q[own - (end - first) : own]
        return result_Q


def uniform_positions(shapes: Shapes) -> Numbers:
    """q as model 1 has it: 1 / (l + 1)."""
    widths_H = shapes.source_size_H + 1
    return np.repeat(1 / widths_H, widths_H * shapes.target_size_H)


def estimate_positions(shapes: Shapes, count_Q: Numbers) -> Numbers:
    """q from expected counts (eq. 27 of Brown et al. 1993, normalised)."""
    row_Q = shapes.rows_Q()
    total = np.bincount(row_Q, weights=count_Q)
    return count_Q / np.maximum(total, 1e-300)[row_Q]


def expect2(
    cooccurrence: Cooccurrence, shapes: Shapes, lexicon_P: Numbers, position_Q: Numbers
) -> tuple[Numbers, Numbers, float, NDArray[np.float32]]:
    """Expected counts of pairs and positions (eq. 25 to 29), log-likelihood (eq. 21), posteriors. [L]"""
    count_P, count_Q = np.zeros(len(lexicon_P)), np.zeros(len(position_Q))
    posterior_L = np.empty(len(cooccurrence.pair_L), np.float32)
    log_likelihood = _expect(
        lexicon_P,
        position_Q,
        cooccurrence.pair_L,
        cooccurrence.first_S,
        cooccurrence.source_size_S,
        cooccurrence.target_size_S,
        shapes.first_H[shapes.shape_S],
        count_P,
        count_Q,
        posterior_L,
    )
    return count_P, count_Q, log_likelihood, posterior_L


def posteriors2(
    cooccurrence: Cooccurrence, shapes: Shapes, lexicon_P: Numbers, position_Q: Numbers
) -> NDArray[np.float32]:
    """P(a_j = i | f, e) of every link. [L]"""
    posterior_L = np.empty(len(cooccurrence.pair_L), np.float32)
    sizes = cooccurrence.source_size_S, cooccurrence.target_size_S
    nothing = np.empty(0)
    _expect(
        lexicon_P,
        position_Q,
        cooccurrence.pair_L,
        cooccurrence.first_S,
        *sizes,
        shapes.first_H[shapes.shape_S],
        nothing,
        nothing,
        posterior_L,
    )
    return posterior_L


@njit(cache=True, nogil=True)
def _expect(
    lexicon_P: Numbers,
    position_Q: Numbers,
    pair_L: Ids,
    first_S: Offsets,
    source_size_S: Offsets,
    target_size_S: Offsets,
    first_position_S: Offsets,
    count_P: Numbers,
    count_Q: Numbers,
    posterior_L: NDArray[np.float32],
) -> float:
    log_likelihood = 0.0
    counting = len(count_Q) > 0
    telling = len(posterior_L) > 0
    for sentence in range(len(source_size_S)):
        width = source_size_S[sentence] + 1
        for target in range(target_size_S[sentence]):
            link = first_S[sentence] + target * width
            place = first_position_S[sentence] + target * width
            total = 0.0
            for i in range(width):
                total += lexicon_P[pair_L[link + i]] * position_Q[place + i]
            # Rounding leaves nothing of what is too unlikely; then all are alike.
            if total <= 0:
                total = 1e-300
            log_likelihood += np.log(total)
            for i in range(width):
                share = lexicon_P[pair_L[link + i]] * position_Q[place + i] / total
                if counting:
                    count_P[pair_L[link + i]] += share
                    count_Q[place + i] += share
                if telling:
                    posterior_L[link + i] = share
    return log_likelihood
