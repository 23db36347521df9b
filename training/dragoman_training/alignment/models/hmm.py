"""The hidden Markov model of alignment (Vogel et al. 1996; with NULL as in Och & Ney 2003, section 2.1.3).

Where a word comes from depends on where the word before it came from: p(i|i', l) is s(i - i'), divided by its
sum over all i of the sentence. A word of NULL keeps the position of the last word that was not. Position 0 is
the beginning. The weights s may differ by the class of the source word at i' (Och & Ney 2003, section 2.3).

Shapes: P distinct word pairs, L links, S sentence pairs, N source words of the bitext, C classes of source
words and, as the last one, of the beginning, D jumps, from -(D - 1) / 2 on, K beginnings of jumps.
"""

from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.bitext import Ids, Offsets
from dragoman_training.alignment.cooccurrence import Cooccurrence
from dragoman_training.alignment.lexicon import Numbers

TIED_JUMPS = 20
"""Jumps that go further than this weigh the same as one that goes this far."""
NUM_STEPS = 20
"""Steps of the maximisation."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Jumps:
    """The transition model."""

    weight_CD: NDArray[np.float64]
    """s(i - i'), for every class."""
    null: float = 0.2
    """The probability that a word comes from NULL."""

    @classmethod
    def uniform(cls, *, max_words: int, num_classes: int = 1, null: float = 0.2) -> "Jumps":
        """All jumps alike."""
        return cls(weight_CD=np.ones((num_classes + 1, 2 * max_words + 1)), null=null)

    def reach(self, max_words: int) -> "Jumps":
        """The same for sentences of so many words: a jump further than any has the last one's weight."""
        more = max_words - self.weight_CD.shape[1] // 2
        if more <= 0:
            return self
        return replace(self, weight_CD=np.pad(self.weight_CD, ((0, 0), (more, more)), mode="edge"))


@dataclass(frozen=True, eq=False, kw_only=True)
class HmmCounts:
    """What an expectation step collects."""

    pair_P: Numbers
    jump_CD: NDArray[np.float64]
    origin_CK: NDArray[np.float64]
    """How often a jump began at i' in a source sentence of l words: K is l (l + 1) / 2 + i'."""
    null: float
    """How many words came from NULL."""
    log_likelihood: float


def expect_hmm(cooccurrence: Cooccurrence, class_N: Ids, lexicon_P: Numbers, jumps: Jumps) -> HmmCounts:
    """Expected counts by the forward-backward algorithm; `class_N` has the class of every source word."""
    longest = int(cooccurrence.source_size_S.max(initial=0))
    pair_P = np.zeros(len(lexicon_P))
    jump_CD = np.zeros_like(jumps.weight_CD)
    origin_CK = np.zeros((len(jump_CD), (longest + 1) * (longest + 2) // 2))
    log_likelihood, null = _run(
        lexicon_P, cooccurrence, class_N, jumps, pair_P, jump_CD, origin_CK, np.empty(0, np.float32)
    )
    return HmmCounts(
        pair_P=pair_P, jump_CD=jump_CD, origin_CK=origin_CK, null=null, log_likelihood=log_likelihood
    )


def posteriors_hmm(
    cooccurrence: Cooccurrence, class_N: Ids, lexicon_P: Numbers, jumps: Jumps
) -> NDArray[np.float32]:
    """P(a_j = i | f, e) of every link. [L]"""
    posterior_L = np.empty(len(cooccurrence.pair_L), np.float32)
    none = np.empty((len(jumps.weight_CD), 0))
    jumps = jumps.reach(int(cooccurrence.source_size_S.max(initial=0)))
    _run(lexicon_P, cooccurrence, class_N, jumps, np.empty(0), none, none, posterior_L)
    return posterior_L


def estimate_jumps(jumps: Jumps, counts: HmmCounts, *, prior: float = 0.0, learn_null: bool = True) -> Jumps:
    """Weights that make the expected counts likelier, with so many prior counts of every jump.

    The weights of one origin are shared among as many positions as its sentence has, so there is no closed
    form. Each step of minorisation-maximisation (Hunter 2004, "MM algorithms for generalized Bradley-Terry
    models", section 5) raises the likelihood, and so does expectation maximisation with them.
    """
    weight_CD = jumps.weight_CD.copy()
    middle = weight_CD.shape[1] // 2
    tied = min(TIED_JUMPS, middle)
    for label, origin_K in enumerate(counts.origin_CK):
        if counts.jump_CD[label].any():
            _maximize(weight_CD[label], counts.jump_CD[label], origin_K, tied, prior)
    num_words = float(counts.origin_CK.sum()) + counts.null
    null = counts.null / num_words if learn_null and num_words else jumps.null
    return Jumps(weight_CD=weight_CD, null=null)


def _run(
    lexicon_P: Numbers,
    cooccurrence: Cooccurrence,
    class_N: Ids,
    jumps: Jumps,
    pair_P: Numbers,
    jump_CD: Numbers,
    origin_CK: Numbers,
    posterior_L: NDArray[np.float32],
) -> tuple[float, float]:
    source_first_S = np.concatenate([[0], np.cumsum(cooccurrence.source_size_S)])
    prefix_CD = np.zeros((len(jumps.weight_CD), jumps.weight_CD.shape[1] + 1))
    np.cumsum(jumps.weight_CD, axis=1, out=prefix_CD[:, 1:])
    return _forward_backward(
        lexicon_P,
        cooccurrence.pair_L,
        cooccurrence.first_S,
        source_first_S,
        cooccurrence.target_size_S,
        class_N,
        jumps.weight_CD,
        prefix_CD,
        jumps.null,
        pair_P,
        jump_CD,
        origin_CK,
        posterior_L,
    )


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _forward_backward(
    lexicon_P: Numbers,
    pair_L: Ids,
    first_S: Offsets,
    source_first_S: Offsets,
    target_size_S: Offsets,
    class_N: Ids,
    weight_CD: Numbers,
    prefix_CD: Numbers,
    null: float,
    pair_P: Numbers,
    jump_CD: Numbers,
    origin_CK: Numbers,
    posterior_L: NDArray[np.float32],
) -> tuple[float, float]:
    """Sentence by sentence; `stay` is the mass of "the last position was i'", whatever the word came from."""
    middle = weight_CD.shape[1] // 2
    start = len(weight_CD) - 1
    longest = 0
    for sentence in range(len(target_size_S)):
        longest = max(longest, source_first_S[sentence + 1] - source_first_S[sentence])
    longest_target = 0
    for size in target_size_S:
        longest_target = max(longest_target, size)
    arrive = np.empty((longest_target, longest + 1))
    stay = np.empty((longest_target + 1, longest + 1))
    scale = np.empty(longest_target)
    after = np.empty(longest + 1)
    before = np.empty(longest + 1)
    emit = np.empty(longest + 1)
    label = np.empty(longest + 1, np.int64)
    spread = np.empty(longest + 1)
    log_likelihood = 0.0
    num_null = 0.0
    counting = len(pair_P) > 0
    for sentence in range(len(target_size_S)):
        first_source = source_first_S[sentence]
        size = source_first_S[sentence + 1] - first_source
        width = size + 1
        num_targets = target_size_S[sentence]
        for i in range(width):
            label[i] = start if i == 0 else class_N[first_source + i - 1]
            low = middle + 1 - i
            total = prefix_CD[label[i], low + size] - prefix_CD[label[i], low]
            spread[i] = (1 - null) / total if total > 0 else 0.0
        stay[0, :width] = 0
        stay[0, 0] = 1
        for j in range(num_targets):
            link = first_S[sentence] + j * width
            arrive[j, :width] = 0
            for i in range(width):
                mass = stay[j, i] * spread[i]
                if mass > 0:
                    weights = weight_CD[label[i]]
                    low = middle - i
                    for k in range(1, width):
                        arrive[j, k] += mass * weights[low + k]
            silent = null * lexicon_P[pair_L[link]]
            total = stay[j, 0] * silent
            for i in range(1, width):
                arrive[j, i] *= lexicon_P[pair_L[link + i]]
                total += arrive[j, i] + stay[j, i] * silent
            if total <= 0:
                total = 1e-300
            scale[j] = total
            log_likelihood += np.log(total)
            stay[j + 1, 0] = stay[j, 0] * silent / total
            for i in range(1, width):
                arrive[j, i] /= total
                stay[j + 1, i] = arrive[j, i] + stay[j, i] * silent / total
        after[:width] = 1
        for j in range(num_targets - 1, -1, -1):
            link = first_S[sentence] + j * width
            silent = null * lexicon_P[pair_L[link]] / scale[j]
            share = 0.0
            for i in range(width):
                share += stay[j, i] * silent * after[i]
            if counting:
                num_null += share
                pair_P[pair_L[link]] += share
                for i in range(1, width):
                    pair_P[pair_L[link + i]] += arrive[j, i] * after[i]
            else:
                posterior_L[link] = share
                for i in range(1, width):
                    posterior_L[link + i] = arrive[j, i] * after[i]
            for i in range(1, width):
                emit[i] = lexicon_P[pair_L[link + i]] * after[i] / scale[j]
            for i in range(width):
                weights = weight_CD[label[i]]
                low = middle - i
                total = 0.0
                for k in range(1, width):
                    total += weights[low + k] * emit[k]
                before[i] = silent * after[i] + spread[i] * total
                mass = stay[j, i] * spread[i]
                if counting and mass > 0:
                    counts = jump_CD[label[i]]
                    for k in range(1, width):
                        counts[low + k] += mass * weights[low + k] * emit[k]
                    origin_CK[label[i], size * width // 2 + i] += mass * total
            after[:width] = before[:width]
    return log_likelihood, num_null


@njit(cache=True, nogil=True)
def _maximize(weight_D: Numbers, count_D: Numbers, origin_K: Numbers, tied: int, prior: float) -> None:
    """Weights in place. Jumps beyond `tied` are one with it, on each side."""
    middle = len(weight_D) // 2
    longest = 0
    while (longest + 1) * (longest + 2) // 2 < len(origin_K):
        longest += 1
    count = np.zeros(2 * tied + 1)
    for place in range(len(weight_D)):
        count[min(max(place - middle, -tied), tied) + tied] += count_D[place]
    for _ in range(NUM_STEPS):
        prefix = np.zeros(len(weight_D) + 1)
        for place in range(len(weight_D)):
            prefix[place + 1] = prefix[place] + weight_D[place]
        # An origin adds N / Z to each jump that it might have taken: a difference at both ends of the run.
        edge = np.zeros(len(weight_D) + 1)
        for size in range(1, longest + 1):
            for i in range(size + 1):
                number = origin_K[size * (size + 1) // 2 + i]
                if number > 0:
                    low = middle + 1 - i
                    rate = number / (prefix[low + size] - prefix[low])
                    edge[low] += rate
                    edge[low + size] -= rate
        open_rate = np.zeros(2 * tied + 1)
        running = 0.0
        for place in range(len(weight_D)):
            running += edge[place]
            open_rate[min(max(place - middle, -tied), tied) + tied] += running
        for place in range(len(weight_D)):
            jump = min(max(place - middle, -tied), tied) + tied
            if open_rate[jump] > 1e-12:
                weight_D[place] = (count[jump] + prior) / open_rate[jump]
        top = weight_D.max()
        for place in range(len(weight_D)):
            weight_D[place] /= top
