"""Models 1, 2 and the HMM as steps of training: their expectation sums over all alignments."""

from dataclasses import dataclass

import numpy as np

from dragoman_training.alignment.corpus.bitext import Ids
from dragoman_training.alignment.lexicon import Numbers
from dragoman_training.alignment.models.diagonal import Diagonal
from dragoman_training.alignment.models.hmm import (
    Jumps,
    estimate_jumps,
    expect_hmm,
    posteriors_hmm,
    viterbi_hmm,
)
from dragoman_training.alignment.models.ibm1 import expect1
from dragoman_training.alignment.models.ibm2 import (
    PositionTable,
    Shapes,
    estimate_positions,
    expect2,
    posteriors2,
    uniform_positions,
)
from dragoman_training.alignment.models.model import Arrays, Direction, Posteriors, Step, likeliest

JUMP_PRIOR = 0.1
"""Prior counts of every jump: what a small corpus never did is not impossible."""


@dataclass(frozen=True)
class Model1:
    """Brown et al. 1993, section 4.1. It has no parameters but the lexicon."""

    def step(self, direction: Direction, lexicon_P: Numbers) -> Step:
        """Exact."""
        pair_P, log_likelihood, posterior_L = expect1(direction.cooccurrence, lexicon_P)
        return Step(pair_P=pair_P, posterior_L=posterior_L, log_likelihood=log_likelihood, next=self)

    def posteriors(self, direction: Direction, lexicon_P: Numbers) -> Posteriors:
        """Of every link."""
        return expect1(direction.cooccurrence, lexicon_P)[2]

    def viterbi(self, direction: Direction, lexicon_P: Numbers) -> Ids:
        """Each word's likeliest: the words do not depend on each other."""
        return likeliest(direction.cooccurrence, self.posteriors(direction, lexicon_P))

    def arrays(self) -> Arrays:
        """None."""
        return {}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "Model1":
        """From none."""
        return cls()


@dataclass(frozen=True, eq=False)
class Model2:
    """Brown et al. 1993, section 4.2: a table for each pair of lengths."""

    table: PositionTable | None = None
    """None before the first step: all positions are alike."""

    def step(self, direction: Direction, lexicon_P: Numbers) -> Step:
        """Exact."""
        shapes = Shapes.of(direction.cooccurrence)
        position_Q = self._positions(shapes)
        pair_P, count_Q, log_likelihood, posterior_L = expect2(
            direction.cooccurrence, shapes, lexicon_P, position_Q
        )
        after = Model2(PositionTable.of(shapes, estimate_positions(shapes, count_Q)))
        return Step(pair_P=pair_P, posterior_L=posterior_L, log_likelihood=log_likelihood, next=after)

    def posteriors(self, direction: Direction, lexicon_P: Numbers) -> Posteriors:
        """Of every link. A pair of lengths that was never seen has the diagonal's positions."""
        shapes = Shapes.of(direction.cooccurrence)
        return posteriors2(direction.cooccurrence, shapes, lexicon_P, self._positions(shapes))

    def _positions(self, shapes: Shapes) -> Numbers:
        if self.table is None:
            return uniform_positions(shapes)
        return self.table.positions(shapes, Diagonal().positions(shapes))

    def viterbi(self, direction: Direction, lexicon_P: Numbers) -> Ids:
        """Each word's likeliest: the words do not depend on each other."""
        return likeliest(direction.cooccurrence, self.posteriors(direction, lexicon_P))

    def arrays(self) -> Arrays:
        """The table."""
        assert self.table is not None
        return {
            "source_size": self.table.source_size_H,
            "target_size": self.table.target_size_H,
            "position": self.table.position_Q.astype(np.float32),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "Model2":
        """From the table."""
        position_Q = arrays["position"].astype(np.float64)
        return cls(PositionTable(arrays["source_size"], arrays["target_size"], position_Q))


@dataclass(frozen=True)
class DiagonalModel:
    """Model 2 with the diagonal of Dyer et al. 2013."""

    diagonal: Diagonal = Diagonal()  # noqa: RUF009

    def step(self, direction: Direction, lexicon_P: Numbers) -> Step:
        """Exact."""
        shapes = Shapes.of(direction.cooccurrence)
        pair_P, count_Q, log_likelihood, posterior_L = expect2(
            direction.cooccurrence, shapes, lexicon_P, self.diagonal.positions(shapes)
        )
        after = DiagonalModel(self.diagonal.estimate(shapes, count_Q))
        return Step(pair_P=pair_P, posterior_L=posterior_L, log_likelihood=log_likelihood, next=after)

    def posteriors(self, direction: Direction, lexicon_P: Numbers) -> Posteriors:
        """Of every link."""
        shapes = Shapes.of(direction.cooccurrence)
        return posteriors2(direction.cooccurrence, shapes, lexicon_P, self.diagonal.positions(shapes))

    def viterbi(self, direction: Direction, lexicon_P: Numbers) -> Ids:
        """Each word's likeliest: the words do not depend on each other."""
        return likeliest(direction.cooccurrence, self.posteriors(direction, lexicon_P))

    def arrays(self) -> Arrays:
        """Two numbers."""
        return {"null": np.array(self.diagonal.null), "tension": np.array(self.diagonal.tension)}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "DiagonalModel":
        """From two numbers."""
        return cls(Diagonal(null=float(arrays["null"]), tension=float(arrays["tension"])))


@dataclass(frozen=True, eq=False)
class Hmm:
    """Vogel et al. 1996, with one class of source words."""

    jumps: Jumps

    @classmethod
    def uniform(cls, direction: Direction) -> "Hmm":
        """All jumps alike."""
        return cls(Jumps.uniform(max_words=int(direction.cooccurrence.source_size_S.max(initial=1))))

    def step(self, direction: Direction, lexicon_P: Numbers) -> Step:
        """Exact. The probability of NULL is not learnt: it would grow at the cost of rare words."""
        counts = expect_hmm(direction.cooccurrence, _one_class(direction), lexicon_P, self.jumps)
        return Step(
            pair_P=counts.pair_P,
            posterior_L=counts.posterior_L,
            log_likelihood=counts.log_likelihood,
            next=Hmm(estimate_jumps(self.jumps, counts, prior=JUMP_PRIOR, learn_null=False)),
        )

    def posteriors(self, direction: Direction, lexicon_P: Numbers) -> Posteriors:
        """Of every link."""
        return posteriors_hmm(direction.cooccurrence, _one_class(direction), lexicon_P, self.jumps)

    def viterbi(self, direction: Direction, lexicon_P: Numbers) -> Ids:
        """By dynamic programming."""
        return viterbi_hmm(direction.cooccurrence, _one_class(direction), lexicon_P, self.jumps)

    def arrays(self) -> Arrays:
        """The jumps' weights and the probability of NULL."""
        return {"jump": self.jumps.weight_CD, "null": np.array(self.jumps.null)}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> "Hmm":
        """From these."""
        return cls(Jumps(weight_CD=arrays["jump"], null=float(arrays["null"])))


def _one_class(direction: Direction) -> Ids:
    return np.zeros(len(direction.bitext.source.word_N), np.int32)


ExactModel = Model1 | Model2 | DiagonalModel | Hmm
EXACT_KINDS: dict[str, type[ExactModel]] = {
    "ibm1": Model1,
    "ibm2": Model2,
    "ibm2-diagonal": DiagonalModel,
    "hmm": Hmm,
}
"""By the names under which they are saved."""
