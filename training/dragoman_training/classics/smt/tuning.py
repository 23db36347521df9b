"""Weights of a log-linear model that make the best of lists of translations: minimum error rate training.

Along w + γ d the score of each translation is a line in γ, and the best translation of a sentence changes
where two lines cross, on their upper envelope. Between crossings BLEU is constant (Och 2003).

Shapes: K translations of a sentence, S sentences, N translations of all of them, F features, 10 counts of
BLEU: matching n-grams of 1 to 4 words, all n-grams, words of the translation, words of the reference.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dragoman_training.alignment.bitext import Numbers
from dragoman_training.classics.smt.decoder import Weights
from dragoman_training.classics.smt.system import System
from dragoman_training.time_left import Say

Counts = Numbers
ORDER = 4
MARGIN = 1.0
"""How far beyond the first and the last crossing γ is tried."""
MIN_GAIN = 0.01
"""BLEU; a round of lines that gains less was the last."""
NUM_BEST = 100
NUM_STARTS = 4
MIN_CHANGE = 0.01
"""Rounds end once no weight changes by more, or no list grows."""
NUM_SAMPLES = 1000


def count_matches(translations: Sequence[str], reference: str) -> Counts:
    """sacreBLEU's counts of each translation, of cased words by its 13a. [K, 10]"""
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(effective_order=True)
    scores = [metric.sentence_score(translation, [reference]) for translation in translations]
    rows = [[*score.counts, *score.totals, score.sys_len, score.ref_len] for score in scores]
    return np.array(rows, np.float64).reshape(-1, 2 * ORDER + 2)


@njit(cache=True, nogil=True)
def bleu(counts: Counts) -> float:
    """BLEU in percent. Of a size of n-grams without a match, half of one counts as matched."""
    if counts[ORDER] == 0 or counts[0] == 0:
        return 0.0
    log = 0.0
    for size in range(ORDER):
        matches, total = max(counts[size], 0.5), max(counts[ORDER + size], 1.0)
        log += np.log(matches / total) / ORDER
    return float(100 * np.exp(log + min(0.0, 1 - counts[2 * ORDER + 1] / counts[2 * ORDER])))


@njit(cache=True, nogil=True)
def search_line(
    offset_N: Numbers, slope_N: Numbers, counts_N10: Counts, first_S: NDArray[np.int64]
) -> tuple[float, float]:
    """The γ in the middle of the best interval, and its BLEU. Of equals the one nearest to 0."""
    at, start_of, hull = np.zeros(len(offset_N)), np.zeros(len(offset_N)), np.zeros(len(offset_N), np.int64)
    change_N10, total, num_changes = np.zeros_like(counts_N10), np.zeros(counts_N10.shape[1]), 0
    for sentence in range(len(first_S) - 1):
        first, end = first_S[sentence], first_S[sentence + 1]
        # By slope; of equal slopes the highest line last.
        order = first + np.argsort(offset_N[first:end], kind="mergesort")
        order = order[np.argsort(slope_N[order], kind="mergesort")]
        size = 0
        for line in order:
            start = -np.inf
            while size > 0:
                top = hull[size - 1]
                if slope_N[top] == slope_N[line]:
                    size -= 1
                    continue
                start = (offset_N[top] - offset_N[line]) / (slope_N[line] - slope_N[top])
                if start > start_of[size - 1]:
                    break
                size -= 1
                start = -np.inf
            hull[size], start_of[size] = line, start
            size += 1
        total += counts_N10[hull[0]]
        for rank in range(1, size):
            at[num_changes] = start_of[rank]
            change_N10[num_changes] = counts_N10[hull[rank]] - counts_N10[hull[rank - 1]]
            num_changes += 1
    if num_changes == 0:
        return 0.0, bleu(total)
    order = np.argsort(at[:num_changes], kind="mergesort")
    best, best_gamma = bleu(total), min(0.0, at[order[0]] - MARGIN)
    for rank in range(num_changes):
        total += change_N10[order[rank]]
        here = at[order[rank]]
        after = at[order[rank + 1]] if rank + 1 < num_changes else max(0.0, here + 2 * MARGIN)
        if after - here < 1e-9:
            continue
        gamma = 0.0 if here < 0.0 < after else (here + after) / 2
        score = bleu(total)
        if score > best + 1e-9 or (score > best - 1e-9 and abs(gamma) < abs(best_gamma)):
            best, best_gamma = score, gamma
    return best_gamma, best


@dataclass(frozen=True, eq=False, kw_only=True)
class Candidates:
    """Translations of sentences, with features and BLEU's counts."""

    features_NF: Numbers
    counts_N10: Counts
    first_S: NDArray[np.int64]
    """[S + 1]: where each sentence's begin, and the end."""

    @classmethod
    def of(cls, features: Sequence[Numbers], counts: Sequence[Counts]) -> "Candidates":
        """Both by sentence. Raises ValueError where a sentence has no translation."""
        sizes = [len(own) for own in features]
        if not sizes or not min(sizes):
            raise ValueError("there is a sentence without a translation: nothing can be chosen for it")
        first_S = np.concatenate([[0], np.cumsum(sizes)])
        return cls(features_NF=np.concatenate(features), counts_N10=np.concatenate(counts), first_S=first_S)

    def choose(self, weights_F: Numbers) -> NDArray[np.int64]:
        """The translation with the best score, counted from 0 in each sentence's own list. [S]"""
        score_N = self.features_NF @ weights_F
        return np.array([np.argmax(own) for own in np.split(score_N, self.first_S[1:-1])], np.int64)

    def bleu(self, weights_F: Numbers) -> float:
        """BLEU of the translations chosen, in percent."""
        chosen = self.first_S[:-1] + self.choose(weights_F)
        return bleu(self.counts_N10[chosen].sum(axis=0))


def tune(
    candidates: Candidates, start_F: Numbers, *, num_starts: int, random: np.random.Generator
) -> tuple[Numbers, float]:
    """The best weights found from the start and from random ones near it, with their BLEU. [F]

    From each, lines along every feature and as many random directions, the best step at a time, until none
    gains. The sum of the weights' magnitudes is one.
    """
    best_F, best = start_F, -1.0
    for number in range(num_starts):
        weights_F = start_F if number == 0 else start_F + random.normal(size=len(start_F)) * np.abs(start_F)
        found_F, score = _climb(candidates, weights_F, random)
        if score > best + 1e-9:
            best_F, best = found_F, score
    return best_F, best


def _climb(candidates: Candidates, weights_F: Numbers, random: np.random.Generator) -> tuple[Numbers, float]:
    score = candidates.bleu(weights_F)
    while True:
        weights_F = weights_F / max(float(np.abs(weights_F).sum()), 1e-12)
        directions = [*np.eye(len(weights_F)), *random.normal(size=weights_F.shape * 2)]
        offset_N = candidates.features_NF @ weights_F
        rest = candidates.counts_N10, candidates.first_S
        steps = [search_line(offset_N, candidates.features_NF @ along_F, *rest) for along_F in directions]
        number = int(np.argmax([found for _, found in steps]))
        gamma, found = steps[number]
        if found < score + MIN_GAIN:
            return weights_F, score
        weights_F, score = weights_F + gamma * directions[number], found


def tune_system(
    system: System,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    rounds: int,
    threads: int,
    seed: int,
    say: Say,
) -> System:
    """The system with the weights of the round whose translations were the best."""
    random = np.random.default_rng(seed)
    features: list[dict[str, Numbers]] = [{} for _ in sources]
    counts: list[dict[str, Counts]] = [{} for _ in sources]
    best, best_bleu, weights = system, -1.0, system.weights.vector()
    # Once more than weights are chosen: the last are tried, too.
    for number in range(1, rounds + 2):
        current = replace(system, weights=Weights.of(weights))
        firsts = []
        num_before = sum(map(len, features))
        lists = current.candidates(sources, NUM_BEST, threads=threads)
        for line, found in enumerate(lists):
            firsts.append(found[0][0])
            new = [text for text, _ in found if text not in counts[line]]
            counts[line].update(zip(new, count_matches(new, references[line]), strict=True))
            # Of a text that was found in an earlier round too, its best way by the weights of this one.
            features[line].update({text: derivation.features_F for text, derivation in found})
        candidates = Candidates.of(
            [np.stack(list(own.values())) for own in features],
            [np.stack([counts[line][text] for text in own]) for line, own in enumerate(features)],
        )
        first = np.stack([counts[line][text] for line, text in enumerate(firsts)]).sum(axis=0)
        found_bleu = bleu(first)
        if found_bleu > best_bleu:
            best, best_bleu = current, found_bleu
        if number > rounds:
            say(f"tuned: BLEU {found_bleu:.2f} with the weights of the last round")
            break
        num_new = sum(map(len, features)) - num_before
        tuned, reached = tune(candidates, weights, num_starts=NUM_STARTS, random=random)
        say(
            f"tuning {number}/{rounds}: BLEU {found_bleu:.2f}, {num_new:,} new translations, of which "
            f"others would be chosen for {reached:.2f}"
        )
        if num_new == 0 or float(np.abs(tuned - weights).max()) < MIN_CHANGE:
            break
        weights = tuned
    return best


def bootstrap(
    systems: Sequence[Sequence[str]], references: Sequence[str]
) -> list[tuple[float, float, float]]:
    """Bounds of 95% and the median of the first system's BLEU, then of what each other has more than it.

    All are measured on the same samples of sentences (Koehn 2004).
    """
    pairs = [zip(lines, references, strict=True) for lines in systems]
    counts = [np.concatenate([count_matches([line], other) for line, other in own]) for own in pairs]
    random = np.random.default_rng(1)
    samples = random.integers(len(references), size=(NUM_SAMPLES, len(references)))
    scores = np.array([[bleu(own[sample].sum(axis=0)) for sample in samples] for own in counts])
    scores[1:] -= scores[0]
    return [tuple(row) for row in np.percentile(scores, [2.5, 50, 97.5], axis=1).T.tolist()]
