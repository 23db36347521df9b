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

from dragoman_training.alignment.corpus.bitext import Ids, Offsets
from dragoman_training.alignment.corpus.cooccurrence import Cooccurrence
from dragoman_training.alignment.lexicon import Numbers
from dragoman_training.alignment.models.weights import maximize_weights

TIED_JUMPS = 20
"""Jumps that go further than this weigh the same as one that goes this far."""


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
        """The same for sentences of so many words; a jump beyond is half as likely as the one before."""
        more = max_words - self.weight_CD.shape[1] // 2
        if more <= 0:
            return self
        decay = 0.5 ** np.arange(1.0, more + 1)
        parts = self.weight_CD[:, :1] * decay[::-1], self.weight_CD, self.weight_CD[:, -1:] * decay
        return replace(self, weight_CD=np.concatenate(parts, axis=1))


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
    posterior_L: NDArray[np.float32]
    """P(a_j = i | f, e) of every link."""


def expect_hmm(cooccurrence: Cooccurrence, class_N: Ids, lexicon_P: Numbers, jumps: Jumps) -> HmmCounts:
    """Expected counts by the forward-backward algorithm; `class_N` has the class of every source word."""
    posterior_L = np.empty(len(cooccurrence.pair_L), np.float32)
    longest = int(cooccurrence.source_size_S.max(initial=0))
    pair_P = np.zeros(len(lexicon_P))
    jump_CD = np.zeros_like(jumps.weight_CD)
    origin_CK = np.zeros((len(jump_CD), (longest + 1) * (longest + 2) // 2))
    log_likelihood, null = _run(
        lexicon_P, cooccurrence, class_N, jumps, pair_P, jump_CD, origin_CK, posterior_L
    )
    return HmmCounts(
        pair_P=pair_P,
        jump_CD=jump_CD,
        origin_CK=origin_CK,
        null=null,
        log_likelihood=log_likelihood,
        posterior_L=posterior_L,
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


def viterbi_hmm(cooccurrence: Cooccurrence, class_N: Ids, lexicon_P: Numbers, jumps: Jumps) -> Ids:
    """The likeliest alignment: of each target word the source position, or 0 for NULL. [U]"""
    jumps = jumps.reach(int(cooccurrence.source_size_S.max(initial=0)))
    source_first_S = np.concatenate([[0], np.cumsum(cooccurrence.source_size_S)])
    alignment_U = np.zeros(int(cooccurrence.target_size_S.sum()), np.int32)
    _viterbi(
        lexicon_P,
        cooccurrence.pair_L,
        cooccurrence.first_S,
        source_first_S,
        cooccurrence.target_size_S,
        class_N,
        jumps.weight_CD,
        jumps.null,
        alignment_U,
    )
    return alignment_U


def estimate_jumps(jumps: Jumps, counts: HmmCounts, *, prior: float = 0.0, learn_null: bool = True) -> Jumps:
    """Weights that make the expected counts likelier, with so many prior counts of every jump.

    The weights of one origin are shared among as many positions as its sentence has (`maximize_weights`).
    """
    weight_CD = jumps.weight_CD.copy()
    middle = weight_CD.shape[1] // 2
    tied = min(TIED_JUMPS, middle)
    size_K, i_K = _origins(counts.origin_CK.shape[1])
    for label, origin_K in enumerate(counts.origin_CK):
        if counts.jump_CD[label].any():
            seen = origin_K > 0
            runs = (middle + 1 - i_K[seen], size_K[seen], origin_K[seen])
            maximize_weights(weight_CD[label], counts.jump_CD[label], *runs, tied, prior)
    num_words = float(counts.origin_CK.sum()) + counts.null
    null = counts.null / num_words if learn_null and num_words else jumps.null
    return Jumps(weight_CD=weight_CD, null=null)


def _origins(number: int) -> tuple[Offsets, Offsets]:
    """l and i' of each K."""
    place_K = np.arange(number)
    size_K = ((np.sqrt(8 * place_K + 1) - 1) / 2).astype(np.int64)
    return size_K, place_K - size_K * (size_K + 1) // 2


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
    return _forward_backward(
        lexicon_P,
        cooccurrence.pair_L,
        cooccurrence.first_S,
        source_first_S,
        cooccurrence.target_size_S,
        class_N,
        jumps.weight_CD,
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
    telling = len(posterior_L) > 0
    for sentence in range(len(target_size_S)):
        first_source = source_first_S[sentence]
        size = source_first_S[sentence + 1] - first_source
        width = size + 1
        num_targets = target_size_S[sentence]
        for i in range(width):
            label[i] = start if i == 0 else class_N[first_source + i - 1]
            low = middle + 1 - i
            total = weight_CD[label[i], low : low + size].sum()
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
            if telling:
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
def _viterbi(
    lexicon_P: Numbers,
    pair_L: Ids,
    first_S: Offsets,
    source_first_S: Offsets,
    target_size_S: Offsets,
    class_N: Ids,
    weight_CD: Numbers,
    null: float,
    alignment_U: Ids,
) -> None:
    """A state is the last position that was not NULL, and whether the word itself comes from NULL."""
    middle = weight_CD.shape[1] // 2
    start = len(weight_CD) - 1
    first_target = 0
    for sentence in range(len(target_size_S)):
        first_source = source_first_S[sentence]
        size = source_first_S[sentence + 1] - first_source
        num_targets = target_size_S[sentence]
        # Whether the word is of NULL, and the position: the states before each word of which the best came.
        origin = np.zeros((num_targets, 2, size + 1), np.int32)
        best = np.full((2, size + 1), -np.inf)
        best[1, 0] = 0.0
        # From each position to each, and from the start, for all words of the sentence.
        log_jump = np.empty((size + 1, size + 1))
        spread = np.zeros(size + 1)
        for last in range(size + 1):
            label = start if last == 0 else class_N[first_source + last - 1]
            low = middle + 1 - last
            total = weight_CD[label, low : low + size].sum()
            if total > 0:
                spread[last] = (1 - null) / total
                for i in range(1, size + 1):
                    jump = weight_CD[label, middle + i - last] * spread[last]
                    log_jump[last, i] = np.log(max(jump, 1e-300))
        for j in range(num_targets):
            link = first_S[sentence] + j * (size + 1)
            silent = np.log(max(null * lexicon_P[pair_L[link]], 1e-300))
            after = np.full((2, size + 1), -np.inf)
            for last in range(size + 1):
                # 2 * position + whether of NULL.
                came = 2 * last if best[0, last] >= best[1, last] else 2 * last + 1
                mass = best[came % 2, last]
                if mass == -np.inf:
                    continue
                after[1, last] = mass + silent
                origin[j, 1, last] = came
                if spread[last] <= 0:
                    continue
                for i in range(1, size + 1):
                    here = mass + log_jump[last, i]
                    if here > after[0, i]:
                        after[0, i] = here
                        origin[j, 0, i] = came
            for i in range(1, size + 1):
                after[0, i] += np.log(max(lexicon_P[pair_L[link + i]], 1e-300))
            best = after
        state, score = 1, -np.inf
        for last in range(size + 1):
            for silent_word in range(2):
                if best[silent_word, last] > score:
                    state, score = 2 * last + silent_word, best[silent_word, last]
        for j in range(num_targets - 1, -1, -1):
            alignment_U[first_target + j] = 0 if state % 2 else state // 2
            state = origin[j, state % 2, state // 2]
        first_target += num_targets
