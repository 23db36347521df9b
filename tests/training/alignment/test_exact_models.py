"""Models 1, 2 and the HMM: expected counts equal brute force, and the likelihood never falls."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.training.alignment.brute_force import NULL, NUM_TARGET, PAIRS, Alignment, Expectation, bitext_of

from dragoman_training.alignment.agreement import count_agreed
from dragoman_training.alignment.corpus.bitext import Bitext
from dragoman_training.alignment.corpus.cooccurrence import Cooccurrence
from dragoman_training.alignment.lexicon import Smoothing, estimate_lexicon, exp_digamma, uniform_lexicon
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
    Shapes,
    estimate_positions,
    expect2,
    posteriors2,
    uniform_positions,
)

MAXIMUM_LIKELIHOOD = Smoothing()
CLASS_OF_WORD = np.array([0, 1, 1], np.int32)


def random_lexicon(cooccurrence: Cooccurrence, seed: int = 1) -> np.ndarray:
    count = np.random.default_rng(seed).uniform(0.1, 1, len(cooccurrence.target_P))
    return estimate_lexicon(cooccurrence, count, MAXIMUM_LIKELIHOOD)


def by_pair(cooccurrence: Cooccurrence, value_P: np.ndarray) -> dict[tuple[int, int], float]:
    keys = zip(cooccurrence.source_P.tolist(), cooccurrence.target_P.tolist(), strict=True)
    return dict(zip(keys, value_P.tolist(), strict=True))


def assert_same_posteriors(
    cooccurrence: Cooccurrence, posterior_L: np.ndarray, expected: Expectation
) -> None:
    for sentence, posterior in enumerate(expected.posteriors):
        own = posterior_L[cooccurrence.first_S[sentence] : cooccurrence.first_S[sentence + 1]]
        np.testing.assert_allclose(own.reshape(posterior.shape), posterior, rtol=1e-5, atol=1e-7)


def test_every_pair_that_stands_together_is_numbered_and_no_other() -> None:
    cooccurrence = Cooccurrence.of(bitext_of(PAIRS))
    together = {(e, f) for source, target in PAIRS for e in (*source, NULL) for f in target}
    assert set(by_pair(cooccurrence, cooccurrence.target_P)) == together
    source_P = cooccurrence.source_P
    for sentence, (source, target) in enumerate(PAIRS):
        pair_L = cooccurrence.pair_L[cooccurrence.first_S[sentence] : cooccurrence.first_S[sentence + 1]]
        links = [(e, f) for f in target for e in (NULL, *source)]
        assert list(zip(source_P[pair_L], cooccurrence.target_P[pair_L], strict=True)) == links


def test_counts_of_model_1_equal_brute_force() -> None:
    cooccurrence = Cooccurrence.of(bitext_of(PAIRS))
    lexicon_P = random_lexicon(cooccurrence)
    t = by_pair(cooccurrence, lexicon_P)

    def probability(source: Sequence[int], target: Sequence[int], alignment: Alignment) -> float:
        result = 1.0
        for f, i in zip(target, alignment, strict=True):
            result *= t[NULL if i == 0 else source[i - 1], f] / (len(source) + 1)
        return result

    expected = Expectation(PAIRS, probability)
    count_P, log_likelihood, posterior_L = expect1(cooccurrence, lexicon_P)
    assert by_pair(cooccurrence, count_P) == pytest.approx(dict(expected.pair))
    assert log_likelihood == pytest.approx(expected.log_likelihood)
    assert_same_posteriors(cooccurrence, posterior_L, expected)


@pytest.mark.parametrize("diagonal", [False, True])
def test_counts_of_model_2_equal_brute_force(diagonal: bool) -> None:
    cooccurrence = Cooccurrence.of(bitext_of(PAIRS))
    shapes = Shapes.of(cooccurrence)
    lexicon_P = random_lexicon(cooccurrence)
    t = by_pair(cooccurrence, lexicon_P)
    chance = Diagonal(null=0.1, tension=3.0)
    position_Q = (
        chance.positions(shapes)
        if diagonal
        else estimate_positions(
            shapes, np.random.default_rng(2).uniform(0.1, 1, len(uniform_positions(shapes)))
        )
    )

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
    count_P, count_Q, log_likelihood, _ = expect2(cooccurrence, shapes, lexicon_P, position_Q)
    assert by_pair(cooccurrence, count_P) == pytest.approx(dict(expected.pair))
    assert log_likelihood == pytest.approx(expected.log_likelihood)
    assert_same_posteriors(cooccurrence, posteriors2(cooccurrence, shapes, lexicon_P, position_Q), expected)
    position = defaultdict(float)
    for (source, target), posterior in zip(PAIRS, expected.posteriors, strict=True):
        (shape,) = np.flatnonzero(
            (shapes.source_size_H == len(source)) & (shapes.target_size_H == len(target))
        )
        for place, own in enumerate(posterior.ravel()):
            position[int(shapes.first_H[shape]) + place] += own
    assert dict(enumerate(count_Q)) == pytest.approx(dict(position))


def test_counts_of_the_hmm_equal_brute_force() -> None:
    bitext = bitext_of(PAIRS)
    cooccurrence = Cooccurrence.of(bitext)
    lexicon_P = random_lexicon(cooccurrence)
    t = by_pair(cooccurrence, lexicon_P)
    weight_CD = np.random.default_rng(3).uniform(0.1, 1, (3, 9))
    jumps = Jumps(weight_CD=weight_CD, null=0.15)

    def steps(source: Sequence[int], alignment: Alignment) -> list[tuple[int, int, int]]:
        """(class, i', i) of every jump."""
        result, last = [], 0
        for i in alignment:
            if i:
                result.append((CLASS_OF_WORD[source[last - 1]] if last else 2, last, i))
                last = i
        return result

    def probability(source: Sequence[int], target: Sequence[int], alignment: Alignment) -> float:
        result = 1.0
        for f, i in zip(target, alignment, strict=True):
            result *= 0.85 * t[source[i - 1], f] if i else 0.15 * t[NULL, f]
        for label, last, i in steps(source, alignment):
            total = sum(weight_CD[label, k - last + 4] for k in range(1, len(source) + 1))
            result *= weight_CD[label, i - last + 4] / total
        return result

    expected = Expectation(PAIRS, probability)
    class_N = CLASS_OF_WORD[bitext.source.word_N]
    counts = expect_hmm(cooccurrence, class_N, lexicon_P, jumps)
    assert by_pair(cooccurrence, counts.pair_P) == pytest.approx(dict(expected.pair))
    assert counts.log_likelihood == pytest.approx(expected.log_likelihood)
    jump_CD, origin_CK, null = np.zeros_like(weight_CD), np.zeros_like(counts.origin_CK), 0.0
    for (source, _), alignments in zip(PAIRS, expected.alignments, strict=True):
        for alignment, share in alignments.items():
            null += share * alignment.count(0)
            for label, last, i in steps(source, alignment):
                jump_CD[label, i - last + 4] += share
                origin_CK[label, len(source) * (len(source) + 1) // 2 + last] += share
    np.testing.assert_allclose(counts.jump_CD, jump_CD)
    np.testing.assert_allclose(counts.origin_CK, origin_CK)
    assert counts.null == pytest.approx(null)
    assert_same_posteriors(cooccurrence, posteriors_hmm(cooccurrence, class_N, lexicon_P, jumps), expected)


def test_jumps_beyond_those_learnt_are_each_half_as_likely_as_the_one_before() -> None:
    bitext = bitext_of(PAIRS)
    cooccurrence = Cooccurrence.of(bitext)
    lexicon_P, class_N = random_lexicon(cooccurrence), CLASS_OF_WORD[bitext.source.word_N]
    short = Jumps(weight_CD=np.random.default_rng(3).uniform(0.1, 1, (3, 5)), null=0.15)
    weight_CD = np.array(
        [
            [row[2 + max(-2, min(2, jump))] * 0.5 ** max(0, abs(jump) - 2) for jump in range(-4, 5)]
            for row in short.weight_CD
        ]
    )
    long = replace(short, weight_CD=weight_CD)
    for found in (posteriors_hmm, viterbi_hmm):
        np.testing.assert_allclose(
            found(cooccurrence, class_N, lexicon_P, short), found(cooccurrence, class_N, lexicon_P, long)
        )


def test_no_other_weight_of_a_jump_makes_the_counts_and_the_prior_likelier() -> None:
    bitext, prior = bitext_of(PAIRS), 0.3
    cooccurrence = Cooccurrence.of(bitext)
    jumps = Jumps(weight_CD=np.random.default_rng(3).uniform(0.1, 1, (2, 9)), null=0.15)
    counts = expect_hmm(cooccurrence, bitext.source.word_N * 0, random_lexicon(cooccurrence), jumps)
    for _ in range(100):
        jumps = estimate_jumps(jumps, counts, prior=prior)

    def likelihood(weight_CD: np.ndarray) -> float:
        result = (prior * np.log(weight_CD / weight_CD.sum(axis=1, keepdims=True))).sum()
        result += (counts.jump_CD * np.log(weight_CD)).sum()
        for length in range(1, 5):
            for last in range(length + 1):
                room_C = weight_CD[:, 5 - last : 5 - last + length].sum(axis=1)
                result -= counts.origin_CK[:, length * (length + 1) // 2 + last] @ np.log(room_C)
        return float(result)

    best = likelihood(jumps.weight_CD)
    for place in np.ndindex(jumps.weight_CD.shape):
        for factor in (0.9, 1.1):
            other_CD = jumps.weight_CD.copy()
            other_CD[place] *= factor
            assert likelihood(other_CD) < best


def test_a_link_counts_as_much_as_both_directions_believe_and_null_as_each_does() -> None:
    bitext, random = bitext_of(PAIRS), np.random.default_rng(1)
    there, back = Cooccurrence.of(bitext), Cooccurrence.of(bitext.reversed())
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


@settings(max_examples=40)
@given(corpora)
def test_likelihood_never_falls(bitext: Bitext) -> None:
    cooccurrence = Cooccurrence.of(bitext)
    lexicon_P, values = uniform_lexicon(cooccurrence), []
    for _ in range(6):
        count_P, value, _ = expect1(cooccurrence, lexicon_P)
        lexicon_P = estimate_lexicon(cooccurrence, count_P, MAXIMUM_LIKELIHOOD)
        values.append(value)
    assert_never_falls(values)
    shapes = Shapes.of(cooccurrence)
    start, values, position_Q = lexicon_P, [], uniform_positions(shapes)
    for _ in range(6):
        count_P, count_Q, value, _ = expect2(cooccurrence, shapes, lexicon_P, position_Q)
        lexicon_P = estimate_lexicon(cooccurrence, count_P, MAXIMUM_LIKELIHOOD)
        position_Q = estimate_positions(shapes, count_Q)
        values.append(value)
    assert_never_falls(values)
    lexicon_P, values, diagonal = start, [], Diagonal()
    for _ in range(6):
        count_P, count_Q, value, _ = expect2(cooccurrence, shapes, lexicon_P, diagonal.positions(shapes))
        lexicon_P = estimate_lexicon(cooccurrence, count_P, MAXIMUM_LIKELIHOOD)
        diagonal = diagonal.estimate(shapes, count_Q)
        values.append(value)
    assert_never_falls(values)
    class_N = bitext.source.word_N % 2
    lexicon_P, values, jumps = start, [], Jumps.uniform(max_words=5, num_classes=2)
    for _ in range(6):
        counts = expect_hmm(cooccurrence, class_N, lexicon_P, jumps)
        lexicon_P = estimate_lexicon(cooccurrence, counts.pair_P, MAXIMUM_LIKELIHOOD)
        jumps = estimate_jumps(jumps, counts)
        values.append(counts.log_likelihood)
    assert_never_falls(values)


def test_smoothed_lexicon_sums_to_one_with_the_words_never_seen_together() -> None:
    cooccurrence = Cooccurrence.of(bitext_of(PAIRS[:3]))
    lexicon_P = estimate_lexicon(cooccurrence, np.full(len(cooccurrence.target_P), 2.0), Smoothing(alpha=0.5))
    by_source = np.bincount(cooccurrence.source_P, weights=lexicon_P)
    seen = np.diff(cooccurrence.first_V)
    assert seen.tolist() == [3, 3, 2, 3]
    never = 0.5 * (4 - seen) / (seen * 2.5 + 0.5 * (4 - seen))
    np.testing.assert_allclose(by_source + never, 1)


def test_exp_digamma_is_that_of_known_points() -> None:
    # ψ(1) = -γ and ψ(1/2) = -γ - 2 ln 2 (Abramowitz & Stegun 6.3.2 and 6.3.3); ψ(x + 1) = ψ(x) + 1/x.
    gamma = 0.57721566490153286
    known = [exp(-gamma), exp(-gamma) / 4, exp(-gamma + 1 + 1 / 2 + 1 / 3)]
    np.testing.assert_allclose(exp_digamma(np.array([1.0, 0.5, 4.0])), known, rtol=1e-8)
    assert exp_digamma(np.array([1e-4]))[0] == 0
