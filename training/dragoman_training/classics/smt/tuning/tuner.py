"""The weights of a system, tuned on other text: decode, tune on all lists so far, and again."""

from collections.abc import Sequence

import numpy as np

from dragoman_training.classics.smt.search.features import Weights
from dragoman_training.classics.smt.system import System
from dragoman_training.classics.smt.training import Say
from dragoman_training.classics.smt.tuning.bleu import Counts, bleu, count_matches
from dragoman_training.classics.smt.tuning.line_search import Numbers
from dragoman_training.classics.smt.tuning.mert import Candidates, tune

NUM_BEST = 100
NUM_STARTS = 4
MIN_CHANGE = 0.01
"""Rounds end once no weight changes by more, or no list grows."""


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
        current = system.with_weights(Weights.of(weights))
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
