"""IBM model 1 (Brown et al. 1993, section 4.1), over every alignment of every pair."""

import math
from collections import defaultdict
from collections.abc import Sequence

import pytest
from tests.training.alignment.brute_force import NULL, NUM_SOURCE, NUM_TARGET, PAIRS, Alignment, Expectation

from dragoman_training.alignment.pieces.links import find_links
from dragoman_training.alignment.pieces.model1 import Iteration, train_model1

Table = dict[tuple[int, int], float]
"""t(f | e), by e and f."""


def maximise(expectation: Expectation) -> Table:
    """The counts of a source word, divided by what they add up to."""
    total: dict[int, float] = defaultdict(float)
    for (source, _), count in expectation.pair.items():
        total[source] += count
    return {(source, target): count / total[source] for (source, target), count in expectation.pair.items()}


def expect(table: Table) -> Expectation:
    """Counts under P(f, a | e), the product of t(f_j | e_{a_j}) / (l + 1)."""

    def probability(source: Sequence[int], target: Sequence[int], alignment: Alignment) -> float:
        words = [NULL, *source]
        return math.prod(table[words[i], f] / len(words) for i, f in zip(alignment, target, strict=True))

    return Expectation(PAIRS, probability)


def test_iterations_are_those_of_a_sum_over_every_alignment() -> None:
    table = {(e, f): 1 / NUM_TARGET for e in range(NUM_SOURCE + 1) for f in range(NUM_TARGET)}
    log_likelihoods = []
    for _ in range(4):
        expectation = expect(table)
        log_likelihoods.append(expectation.log_likelihood)
        # What never stands together has no probability.
        table = dict.fromkeys(table, 0.0) | maximise(expectation)
    iterations: list[Iteration] = []
    sources, targets = zip(*PAIRS, strict=True)
    links = find_links(
        sources, targets, source_vocabulary=NUM_SOURCE, target_vocabulary=NUM_TARGET, block_links=5
    )
    found = train_model1(links, num_iterations=4, report=iterations.append)
    assert {key: found.row(key[0]).get(key[1], 0.0) for key in table} == pytest.approx(table, abs=1e-6)
    assert [each.log_likelihood for each in iterations] == pytest.approx(log_likelihoods)
