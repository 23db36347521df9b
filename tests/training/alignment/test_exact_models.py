"""Models 1, 2 and the HMM: expected counts equal brute force, and the likelihood never falls."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.training.alignment.brute_force import (
    DIRECTION,
    LINKS,
    NULL,
    NUM_TARGET,
    PAIRS,
    Alignment,
    Expectation,
    bitext_of,
    by_pair,
)

from dragoman_training.alignment.bitext import Bitext, Links
from dragoman_training.alignment.hmm import Hmm
from dragoman_training.alignment.lexicon import estimate_lexicon, uniform_lexicon
from dragoman_training.alignment.models import (
    DiagonalModel,
    Direction,
    Model,
    Model1,
    Shapes,
    expect,
    normalize,
)
from dragoman_training.alignment.training import count_agreed
from dragoman_training.classics.fertility import Model2, PositionTable

RANDOM_P = np.random.default_rng(1).uniform(0.1, 1, len(LINKS.target_P))
LEXICON_P = estimate_lexicon(LINKS, RANDOM_P, 0.0)


def test_every_pair_that_stands_together_is_numbered_and_no_other() -> None:
    together = {(e, f) for source, target in PAIRS for e in (*source, NULL) for f in target}
    assert set(by_pair(LINKS, LINKS.target_P)) == together
    source_P = LINKS.source_P
    for sentence, (source, target) in enumerate(PAIRS):
        pair_L = LINKS.pair_L[LINKS.first_S[sentence] : LINKS.first_S[sentence + 1]]
        expected = [(e, f) for f in target for e in (NULL, *source)]
        assert list(zip(source_P[pair_L], LINKS.target_P[pair_L], strict=True)) == expected


def test_counts_of_model_1_equal_brute_force() -> None:
    t = by_pair(LINKS, LEXICON_P)

    def probability(source: Sequence[int], target: Sequence[int], alignment: Alignment) -> float:
        result = 1.0
        for f, i in zip(target, alignment, strict=True):
            result *= t[NULL if i == 0 else source[i - 1], f] / (len(source) + 1)
        return result

    Expectation(PAIRS, probability).assert_counts(Model1().step(DIRECTION, LEXICON_P))


@pytest.mark.parametrize("diagonal", [False, True])
def test_counts_of_model_2_equal_brute_force(diagonal: bool) -> None:
    shapes = Shapes.of(LINKS)
    t = by_pair(LINKS, LEXICON_P)
    random_Q = normalize(np.random.default_rng(2).uniform(0.1, 1, len(shapes.row_Q)), shapes.row_Q)
    table = PositionTable(shapes.source_size_H, shapes.target_size_H, random_Q)
    model = DiagonalModel(null=0.1, tension=3.0) if diagonal else Model2(table)
    position_Q = model.positions(shapes)

    def q(i: int, j: int, length: int, size: int) -> float:
        if diagonal:
            # Dyer et al. 2013, eq. 1 and the line above it.
            weights = [exp(-3.0 * abs(k / length - (j + 1) / size)) for k in range(1, length + 1)]
            return 0.1 if i == 0 else 0.9 * weights[i - 1] / sum(weights)
        (shape,) = np.flatnonzero((shapes.source_size_H == length) & (shapes.target_size_H == size))
        return float(position_Q[shapes.first_H[shape] + j * (length + 1) + i])

    def probability(source: Sequence[int], target: Sequence[int], alignment: Alignment) -> float:
        result = 1.0
        for j, i in enumerate(alignment):
            result *= t[NULL if i == 0 else source[i - 1], target[j]] * q(i, j, len(source), len(target))
        return result

    expected = Expectation(PAIRS, probability)
    expected.assert_counts(model.step(DIRECTION, LEXICON_P))
    expected.assert_posteriors(model.posteriors(DIRECTION, LEXICON_P))
    count_Q = expect(LINKS, LEXICON_P, position_Q, shapes.first_H[shapes.shape_S])[1]
    position = defaultdict(float)
    for (source, target), posterior in zip(PAIRS, expected.posteriors, strict=True):
        (shape,) = np.flatnonzero(
            (shapes.source_size_H == len(source)) & (shapes.target_size_H == len(target))
        )
        for place, own in enumerate(posterior.ravel()):
            position[int(shapes.first_H[shape]) + place] += own
    assert dict(enumerate(count_Q)) == pytest.approx(dict(position))


def steps(alignment: Alignment) -> list[tuple[int, int, int]]:
    """(0, or 1 at the beginning; i'; i) of every jump."""
    result, last = [], 0
    for i in alignment:
        if i:
            result.append((int(last == 0), last, i))
            last = i
    return result


def expectation_of(model: Hmm, t: dict[tuple[int, int], float]) -> Expectation:
    weight_CD, null = model.weight_CD, model.null

    def probability(source: Sequence[int], target: Sequence[int], alignment: Alignment) -> float:
        result = 1.0
        for f, i in zip(target, alignment, strict=True):
            result *= (1 - null) * t[source[i - 1], f] if i else null * t[NULL, f]
        for label, last, i in steps(alignment):
            total = sum(weight_CD[label, k - last + 4] for k in range(1, len(source) + 1))
            result *= weight_CD[label, i - last + 4] / total
        return result

    return Expectation(PAIRS, probability)


def test_counts_of_the_hmm_equal_brute_force() -> None:
    weight_CD = np.random.default_rng(3).uniform(0.1, 1, (2, 9))
    model = Hmm(weight_CD=weight_CD, null=0.15)
    expected = expectation_of(model, by_pair(LINKS, LEXICON_P))
    counts = model.expect(LINKS, LEXICON_P)
    expected.assert_counts(counts)
    jump_CD, origin_CK = np.zeros_like(weight_CD), np.zeros_like(counts.origin_CK)
    for (source, _), alignments in zip(PAIRS, expected.alignments, strict=True):
        for alignment, share in alignments.items():
            for label, last, i in steps(alignment):
                jump_CD[label, i - last + 4] += share
                origin_CK[label, len(source) * (len(source) + 1) // 2 + last] += share
    np.testing.assert_allclose(counts.jump_CD, jump_CD)
    np.testing.assert_allclose(counts.origin_CK, origin_CK)
    expected.assert_posteriors(model.posteriors(DIRECTION, LEXICON_P))


def test_jumps_beyond_those_learnt_are_each_half_as_likely_as_the_one_before() -> None:
    short = Hmm(weight_CD=np.random.default_rng(3).uniform(0.1, 1, (2, 5)), null=0.15)
    weight_CD = np.array(
        [
            [row[2 + max(-2, min(2, jump))] * 0.5 ** max(0, abs(jump) - 2) for jump in range(-4, 5)]
            for row in short.weight_CD
        ]
    )
    long = replace(short, weight_CD=weight_CD)
    for found in (Hmm.posteriors, Hmm.viterbi):
        np.testing.assert_allclose(found(short, DIRECTION, LEXICON_P), found(long, DIRECTION, LEXICON_P))


def test_no_other_weight_of_a_jump_makes_the_counts_and_the_prior_likelier() -> None:
    prior = 0.3
    model = Hmm(weight_CD=np.random.default_rng(3).uniform(0.1, 1, (2, 9)), null=0.15)
    counts = model.expect(LINKS, LEXICON_P)
    for _ in range(100):
        model = model.estimated(counts, prior)

    def likelihood(weight_CD: np.ndarray) -> float:
        result = (prior * np.log(weight_CD / weight_CD.sum(axis=1, keepdims=True))).sum()
        result += (counts.jump_CD * np.log(weight_CD)).sum()
        for length in range(1, 5):
            for last in range(length + 1):
                room_C = weight_CD[:, 5 - last : 5 - last + length].sum(axis=1)
                result -= counts.origin_CK[:, length * (length + 1) // 2 + last] @ np.log(room_C)
        return float(result)

    best = likelihood(model.weight_CD)
    for place in np.ndindex(model.weight_CD.shape):
        for factor in (0.9, 1.1):
            other_CD = model.weight_CD.copy()
            other_CD[place] *= factor
            assert likelihood(other_CD) < best


def test_a_link_counts_as_much_as_both_directions_believe_and_null_as_each_does() -> None:
    bitext, random = bitext_of(PAIRS), np.random.default_rng(1)
    there, back = Links.of(bitext), Links.of(bitext.reversed())
    posterior_L, posterior_K = (random.random(len(one.pair_L), np.float32) for one in (there, back))
    forward: dict[tuple[int, int], float] = defaultdict(float)
    backward: dict[tuple[int, int], float] = defaultdict(float)
    for (source, target), first, other_first in zip(PAIRS, there.first_S, back.first_S, strict=False):
        for (i, e), (j, f) in product(enumerate(source), enumerate(target)):
            believed = posterior_L[first + j * (len(source) + 1) + i + 1]
            agreed = float(believed) * float(posterior_K[other_first + i * (len(target) + 1) + j + 1])
            forward[e, f] += agreed
            backward[f, e] += agreed
        for j, f in enumerate(target):
            forward[NULL, f] += float(posterior_L[first + j * (len(source) + 1)])
        for i, e in enumerate(source):
            backward[NUM_TARGET, e] += float(posterior_K[other_first + i * (len(target) + 1)])
    forward_P, backward_P = count_agreed(there, back, posterior_L, posterior_K)
    assert by_pair(there, forward_P) == pytest.approx(dict(forward), rel=1e-5)
    assert by_pair(back, backward_P) == pytest.approx(dict(backward), rel=1e-5)


sentences = st.lists(st.integers(0, 3), min_size=1, max_size=5)
corpora = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=8).map(
    lambda pairs: bitext_of(pairs, 4, 4)
)


def assert_never_falls(values: list[float]) -> None:
    for before, after in pairwise(values):
        assert after >= before - 1e-9 * abs(before) - 1e-12


@given(corpora)
def test_likelihood_never_falls(bitext: Bitext) -> None:
    direction = Direction.of(bitext)

    def learn(model: Model, lexicon_P: np.ndarray) -> np.ndarray:
        values = []
        for _ in range(6):
            step = model.step(direction, lexicon_P)
            lexicon_P, model = estimate_lexicon(direction.links, step.pair_P, 0.0), step.next
            values.append(step.log_likelihood)
        assert_never_falls(values)
        return lexicon_P

    start_P = learn(Model1(), uniform_lexicon(direction.links))
    learn(Model2(), start_P)
    learn(DiagonalModel(), start_P)
    values, model, lexicon_P = [], Hmm.after(None, direction, start_P), start_P
    for _ in range(6):
        counts = model.expect(direction.links, lexicon_P)
        lexicon_P = estimate_lexicon(direction.links, counts.pair_P, 0.0)
        model = model.estimated(counts, 0.0)
        values.append(counts.log_likelihood)
    assert_never_falls(values)


def test_smoothed_lexicon_sums_to_one_with_the_words_never_seen_together() -> None:
    links = Links.of(bitext_of(PAIRS[:3]))
    lexicon_P = estimate_lexicon(links, np.full(len(links.target_P), 2.0), 0.5)
    by_source = np.bincount(links.source_P, weights=lexicon_P)
    seen = np.diff(links.first_V)
    assert seen.tolist() == [3, 3, 2, 3]
    never = 0.5 * (4 - seen) / (seen * 2.5 + 0.5 * (4 - seen))
    np.testing.assert_allclose(by_source + never, 1)


def test_viterbi_alignment_of_the_hmm_is_the_likeliest_of_all() -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        lexicon_P = estimate_lexicon(LINKS, random.uniform(0.01, 1, len(LINKS.target_P)), 0.0)
        model = Hmm(weight_CD=random.uniform(0.1, 1, (2, 9)), null=0.3)
        shares = expectation_of(model, by_pair(LINKS, lexicon_P)).alignments
        expected = [max(share, key=share.__getitem__) for share in shares]
        found = model.viterbi(DIRECTION, lexicon_P)
        assert found.tolist() == [i for alignment in expected for i in alignment]
