"""Minimum error rate training: the line search against a fine grid."""

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from dragoman_training.classics.smt.tuning import Candidates, bleu, count_matches, search_line, tune

NUM_SENTENCES, NUM_LISTED, NUM_FEATURES = 12, 8, 4


def candidates(seed: int = 0) -> Candidates:
    """Counts that follow hidden weights, with noise."""
    random = np.random.default_rng(seed)
    features, counts = [], []
    for _ in range(NUM_SENTENCES):
        own = random.normal(size=(NUM_LISTED, NUM_FEATURES))
        good = own @ [1.0, -0.5, 0.2, 0.0] + random.normal(scale=0.3, size=NUM_LISTED)
        matches = np.clip(np.round(6 + 2 * good), 0, 10)
        rows = [[n, max(0, n - 2), max(0, n - 4), max(0, n - 6), 10, 9, 8, 7, 10, 10] for n in matches]
        features.append(own)
        counts.append(np.array(rows))
    return Candidates.of(features, counts)


@pytest.mark.parametrize("seed", range(3))
def test_no_step_of_a_fine_grid_is_better_than_the_one_found(seed: int) -> None:
    given, random = candidates(seed), np.random.default_rng(seed)
    start_F, direction_F = random.normal(size=(2, NUM_FEATURES))
    gamma, found = search_line(
        given.features_NF @ start_F, given.features_NF @ direction_F, given.counts_N10, given.first_S
    )
    assert given.bleu(start_F + gamma * direction_F) == pytest.approx(found)
    assert (
        found >= max(given.bleu(start_F + step * direction_F) for step in np.linspace(-20, 20, 1001)) - 1e-9
    )


def test_tuning_finds_weights_that_are_better_than_the_start() -> None:
    given, start_F = candidates(), np.array([0.1, 0.5, 0.5, 0.5])
    tuned_F, found = tune(given, start_F, num_starts=4, random=np.random.default_rng(1))
    assert found > given.bleu(start_F) + 5
    assert given.bleu(tuned_F) == pytest.approx(found)
    assert tuned_F[0] > 0 > tuned_F[1]
    assert np.abs(tuned_F).sum() == pytest.approx(1)


def test_of_equal_features_the_first_is_chosen_and_nothing_moves() -> None:
    given = Candidates.of([np.ones((3, 2))] * 2, [np.tile([5, 4, 3, 2, 5, 4, 3, 2, 5, 5.0], (3, 1))] * 2)
    assert given.choose(np.ones(2)).tolist() == [0, 0]
    assert search_line(np.ones(6), np.ones(6), given.counts_N10, given.first_S) == (0.0, 100.0)


@pytest.mark.parametrize("end", ["", " Now they do.", "They do."])
@pytest.mark.parametrize("is_short", [True, False])
def test_counts_make_the_bleu_of_sacrebleu(end: str, is_short: bool) -> None:
    """Of translations that are as long as their references, shorter, and longer."""
    translations = ["A man is sleeping on the sofa, I think.", "Two dogs run through the green grass."]
    references = ["A man sleeps on the sofa, I think.", "Two dogs are running through green grass there."]
    (references if is_short else translations)[1] += end
    counts = sum(count_matches([one], other)[0] for one, other in zip(translations, references, strict=True))
    assert bleu(counts) == pytest.approx(BLEU().corpus_score(translations, [references]).score)
