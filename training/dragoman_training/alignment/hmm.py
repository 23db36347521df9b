"""The hidden Markov model of alignment (Vogel et al. 1996; with NULL as in Och & Ney 2003, section 2.1.3).

Where a word comes from depends on where the word before it came from: p(i|i', l) is s(i - i'), divided by its
sum over all i of the sentence. A word of NULL keeps the position of the last word that was not. Position 0 is
the beginning, whose weights s are its own.

Shapes: P distinct word pairs, L links, U target words, C = 2, for words and for the beginning, D jumps, from
-(D - 1) / 2 on, K beginnings of jumps, G origins with the same room.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numba import njit

from dragoman_training.alignment.bitext import Ids, Links, Numbers, Offsets
from dragoman_training.alignment.models import Direction, Model, Posteriors, Step

TIED_JUMPS = 20
"""Jumps that go further than this weigh the same as one that goes this far."""
JUMP_PRIOR = 0.1
"""Prior counts of every jump: what a small corpus never did is not impossible."""
NULL = 0.2
"""The probability that a word comes from NULL. It is not learnt: it would grow at the cost of rare words."""
NUM_STEPS = 20
"""Steps of the maximisation of weights."""


Tables = tuple[Numbers, Numbers, Numbers, Posteriors]
"""The counts of `HmmCounts`, and the posteriors."""


class HmmCounts(NamedTuple):
    """Expected counts, posteriors of every link, and the log-likelihood."""

    pair_P: Numbers
    jump_CD: Numbers
    origin_CK: Numbers
    """How often a jump began at i' in a source sentence of l words: K is l (l + 1) / 2 + i'."""
    posterior_L: Posteriors
    log_likelihood: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Hmm(Model):
    KIND = "hmm"
    SAVED: ClassVar = {"jump": "weight_CD", "null": "null"}

    weight_CD: Numbers
    """s(i - i'), of words and of the beginning."""
    null: float = NULL

    @classmethod
    def after(cls, before: Model | None, direction: Direction, lexicon_P: Numbers) -> Self:
        """A model to begin with, whatever was trained before: all jumps are alike."""
        return cls(weight_CD=np.ones((2, 2 * int(direction.links.source_size_S.max(initial=1)) + 1)))

    def step(self, direction: Direction, lexicon_P: Numbers) -> Step:
        """Exact, by the forward-backward algorithm."""
        found = self.expect(direction.links, lexicon_P)
        return Step(found.pair_P, found.posterior_L, found.log_likelihood, self.estimated(found, JUMP_PRIOR))

    def posteriors(self, direction: Direction, lexicon_P: Numbers) -> Posteriors:
        links, none = direction.links, np.empty((2, 0))
        tables = none[0], none, none, np.empty(len(links.pair_L), np.float32)
        _forward_backward(lexicon_P, links, self._reaching(links), self.null, tables)
        return tables[3]

    def viterbi(self, direction: Direction, lexicon_P: Numbers) -> Ids:
        return _viterbi(lexicon_P, direction.links, self._reaching(direction.links), self.null)

    def expect(self, links: Links, lexicon_P: Numbers) -> HmmCounts:
        longest = int(links.source_size_S.max(initial=0))
        pair_P, jump_CD = np.zeros(len(lexicon_P)), np.zeros_like(self.weight_CD)
        origin_CK = np.zeros((2, (longest + 1) * (longest + 2) // 2))
        posterior_L = np.empty(len(links.pair_L), np.float32)
        tables = pair_P, jump_CD, origin_CK, posterior_L
        return HmmCounts(*tables, _forward_backward(lexicon_P, links, self.weight_CD, self.null, tables))

    def estimated(self, counts: HmmCounts, prior: float) -> "Hmm":
        """Weights that make the expected counts likelier, beside so many prior counts of every jump.

        The weights of one origin are shared among as many positions as its sentence has (`maximize_weights`).
        """
        weight_CD = self.weight_CD.copy()
        middle = weight_CD.shape[1] // 2
        # l and i' of each K.
        place_K = np.arange(counts.origin_CK.shape[1])
        size_K = ((np.sqrt(8 * place_K + 1) - 1) / 2).astype(np.int64)
        i_K = place_K - size_K * (size_K + 1) // 2
        for label, origin_K in enumerate(counts.origin_CK):
            if counts.jump_CD[label].any():
                seen = origin_K > 0
                runs = (middle + 1 - i_K[seen], size_K[seen], origin_K[seen])
                tied = min(TIED_JUMPS, middle)
                maximize_weights(weight_CD[label], counts.jump_CD[label], *runs, tied, prior)
        return Hmm(weight_CD=weight_CD, null=self.null)

    def _reaching(self, links: Links) -> Numbers:
        """The weights for the longest sentence; a jump beyond is half as likely as the one before."""
        more = int(links.source_size_S.max(initial=0)) - self.weight_CD.shape[1] // 2
        if more <= 0:
            return self.weight_CD
        decay = 0.5 ** np.arange(1.0, more + 1)
        ends = self.weight_CD[:, :1] * decay[::-1], self.weight_CD[:, -1:] * decay
        return np.concatenate([ends[0], self.weight_CD, ends[1]], axis=1)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _forward_backward(
    lexicon_P: Numbers, links: Links, weight_CD: Numbers, null: float, tables: Tables
) -> float:
    """Adds to counts where there is room for them; `stay` is the mass of "the last position was i'"."""
    pair_P, jump_CD, origin_CK, posterior_L = tables
    pair_L, first_S = links.pair_L, links.first_S
    source_size_S, target_size_S = links.source_size_S, links.target_size_S
    middle = weight_CD.shape[1] // 2
    longest, longest_target = 0, 0
    for sentence in range(len(target_size_S)):
        longest = max(longest, source_size_S[sentence])
        longest_target = max(longest_target, target_size_S[sentence])
    arrive = np.empty((longest_target, longest + 1))
    stay = np.empty((longest_target + 1, longest + 1))
    scale = np.empty(longest_target)
    after = np.empty(longest + 1)
    before = np.empty(longest + 1)
    emit = np.empty(longest + 1)
    spread = np.empty(longest + 1)
    log_likelihood = 0.0
    counting = len(pair_P) > 0
    for sentence in range(len(target_size_S)):
        size = source_size_S[sentence]
        width = size + 1
        num_targets = target_size_S[sentence]
        for i in range(width):
            low = middle + 1 - i
            total = weight_CD[int(i == 0), low : low + size].sum()
            spread[i] = (1 - null) / total if total > 0 else 0.0
        stay[0, :width] = 0
        stay[0, 0] = 1
        for j in range(num_targets):
            link = first_S[sentence] + j * width
            arrive[j, :width] = 0
            for i in range(width):
                mass = stay[j, i] * spread[i]
                if mass > 0:
                    weights = weight_CD[int(i == 0)]
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
                pair_P[pair_L[link]] += share
                for i in range(1, width):
                    pair_P[pair_L[link + i]] += arrive[j, i] * after[i]
            posterior_L[link] = share
            for i in range(1, width):
                posterior_L[link + i] = arrive[j, i] * after[i]
            for i in range(1, width):
                emit[i] = lexicon_P[pair_L[link + i]] * after[i] / scale[j]
            for i in range(width):
                weights = weight_CD[int(i == 0)]
                low = middle - i
                total = 0.0
                for k in range(1, width):
                    total += weights[low + k] * emit[k]
                before[i] = silent * after[i] + spread[i] * total
                mass = stay[j, i] * spread[i]
                if counting and mass > 0:
                    counts = jump_CD[int(i == 0)]
                    for k in range(1, width):
                        counts[low + k] += mass * weights[low + k] * emit[k]
                    origin_CK[int(i == 0), size * width // 2 + i] += mass * total
            after[:width] = before[:width]
    return log_likelihood


@njit(cache=True, nogil=True)
def _viterbi(lexicon_P: Numbers, links: Links, weight_CD: Numbers, null: float) -> Ids:
    """A state is the last position that was not NULL, and whether the word itself comes from NULL."""
    alignment_U = np.zeros(links.target_size_S.sum(), np.int32)
    middle = weight_CD.shape[1] // 2
    first_target = 0
    for sentence in range(len(links.target_size_S)):
        size, num_targets = links.source_size_S[sentence], links.target_size_S[sentence]
        # Whether the word is of NULL, and the position: the states before each word of which the best came.
        origin = np.zeros((num_targets, 2, size + 1), np.int32)
        best = np.full((2, size + 1), -np.inf)
        best[1, 0] = 0.0
        # From each position to each, and from the start, for all words of the sentence.
        log_jump = np.empty((size + 1, size + 1))
        spread = np.zeros(size + 1)
        for last in range(size + 1):
            low = middle + 1 - last
            total = weight_CD[int(last == 0), low : low + size].sum()
            if total > 0:
                spread[last] = (1 - null) / total
                for i in range(1, size + 1):
                    jump = weight_CD[int(last == 0), middle + i - last] * spread[last]
                    log_jump[last, i] = np.log(max(jump, 1e-300))
        for j in range(num_targets):
            link = links.first_S[sentence] + j * (size + 1)
            silent = np.log(max(null * lexicon_P[links.pair_L[link]], 1e-300))
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
                after[0, i] += np.log(max(lexicon_P[links.pair_L[link + i]], 1e-300))
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
    return alignment_U


@njit(cache=True, nogil=True)
def maximize_weights(
    weight_D: Numbers,
    count_D: Numbers,
    first_G: Offsets,
    size_G: Offsets,
    number_G: Numbers,
    tied: int,
    prior: float,
) -> None:
    """Weights of jumps that are normalised over the jumps which a place has room for, in place.

    There is no closed form for them. Each step of minorisation-maximisation (Hunter 2004, "MM algorithms for
    generalized Bradley-Terry models", section 5) raises the likelihood. `number_G` origins had room for the
    jumps from place `first_G` on, `size_G` of them. Jumps beyond `tied` are one with it, on each side. The
    prior is as many jumps of each kind.
    """
    middle = len(weight_D) // 2
    jump_D = np.minimum(np.maximum(np.arange(len(weight_D)) - middle, -tied), tied) + tied
    count = np.bincount(jump_D, count_D)
    for _ in range(NUM_STEPS):
        # An origin adds N / Z to each jump that it had room for.
        rate_D = np.zeros(len(weight_D))
        for origin in range(len(first_G)):
            run = slice(first_G[origin], first_G[origin] + size_G[origin])
            total = weight_D[run].sum()
            if total > 0:
                rate_D[run] += number_G[origin] / total
        # The prior's jumps come from an origin with room for all.
        total = weight_D[middle - tied : middle + tied + 1].sum()
        open_rate = np.full(2 * tied + 1, prior * (2 * tied + 1) / max(total, 1e-300))
        for place in range(len(weight_D)):
            open_rate[jump_D[place]] += rate_D[place]
        for place, jump in enumerate(jump_D):
            if open_rate[jump] > 0:
                weight_D[place] = (count[jump] + prior) / open_rate[jump]
        top = weight_D.max()
        if top > 0:
            weight_D /= top
