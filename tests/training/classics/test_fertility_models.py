"""Models 3, 4 and 5 against the equations of Brown et al. 1993 in plain loops, over all alignments."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import comb, exp, factorial

import numpy as np
import pytest
from tests.training.alignment.brute_force import (
    DIRECTION,
    LINKS,
    NULL,
    PAIRS,
    Alignment,
    Expectation,
    bitext_of,
    by_pair,
)

from dragoman_training.alignment.bitext import Sentences
from dragoman_training.alignment.hmm import Hmm
from dragoman_training.alignment.lexicon import estimate_lexicon, uniform_lexicon
from dragoman_training.alignment.models import Direction, Shapes
from dragoman_training.classics.climbing import Counts, SentencePair, walk
from dragoman_training.classics.fertility import FertilityModel, Model3, Model4, Model5, PositionTable, Priors
from dragoman_training.classics.word_classes import learn_classes

NUM_FERTILITIES = 4
MIDDLE = 9
"""Jumps go from -9 to 9."""
SOURCE_CLASS, TARGET_CLASS = np.array([0, 1, 1, 0], np.int32), np.array([0, 1, 0, 1, 1], np.int32)
KINDS = [Model3, Model4, Model5]
Lexicon = dict[tuple[int, int], float]
Place = Callable[[int, int, int, int], float]


def random_model(kind: type[FertilityModel], seed: int = 1) -> FertilityModel:
    random = np.random.default_rng(seed)
    shapes = Shapes.of(LINKS)
    fertility_VF = random.uniform(0.1, 1, (4, NUM_FERTILITIES))
    head_ABD, tail_BD = (random.uniform(0.1, 1, (*sizes, 2 * MIDDLE + 1)) for sizes in ((3, 2), (2,)))
    if kind is Model4:
        tail_BD[:, : MIDDLE + 1] = 1e-30
        head_ABD, tail_BD = (np.log(a / a.sum(axis=-1, keepdims=True)) for a in (head_ABD, tail_BD))
    elif kind is Model5:
        head_ABD = head_ABD[:1]
    return kind(
        start=Hmm.after(None, DIRECTION, np.empty(0)),
        null=0.2,
        fertility_VF=fertility_VF / fertility_VF.sum(axis=1, keepdims=True),
        place=PositionTable(shapes.source_size_H, shapes.target_size_H, random_places(shapes, random)),
        source_class_V=SOURCE_CLASS,
        target_class_V=TARGET_CLASS,
        head_ABD=head_ABD,
        tail_BD=tail_BD,
        max_alignments=1000,
    )


def random_places(shapes: Shapes, random: np.random.Generator) -> np.ndarray:
    """d(j|i,l,m): over j they sum to one."""
    result = []
    for size, length in zip(shapes.source_size_H, shapes.target_size_H, strict=True):
        matrix = random.uniform(0.1, 1, (length, size + 1))
        result.append((matrix / matrix.sum(axis=0)).ravel())
    return np.concatenate(result)


START_U = np.ones(len(DIRECTION.target_U), np.int32)
LEXICON_P = np.random.default_rng(5).uniform(0.1, 0.9, len(LINKS.target_P))


def cepts(source: Sequence[int], alignment: Alignment) -> list[list[int]]:
    """The target positions, from 1 on, of each source word, ascending."""
    return [[j + 1 for j, i in enumerate(alignment) if i == k] for k in range(1, len(source) + 1)]


def fertility_part(
    model: FertilityModel, t: Lexicon, source: Sequence[int], target: Sequence[int], alignment: Alignment
) -> float:
    """What the three models have in common: NULL (eq. 31), n and t."""
    m, silent = len(target), alignment.count(0)
    if m < 2 * silent:
        return 0.0
    p1 = model.null
    result = comb(m - silent, silent) * p1**silent * (1 - p1) ** (m - 2 * silent)
    for word, cept in zip(source, cepts(source, alignment), strict=True):
        result *= model.fertility_VF[word, len(cept)]
    for f, i in zip(target, alignment, strict=True):
        result *= t[NULL if i == 0 else source[i - 1], f]
    return float(result)


def jumps4(source: Sequence[int], target: Sequence[int], alignment: Alignment) -> list[tuple[object, ...]]:
    """Of each word its jump: (head, A, B, j - centre) or (tail, B, j - j')."""
    result: list[tuple[object, ...]] = []
    centre, source_class = 0, 2
    for word, cept in zip(source, cepts(source, alignment), strict=True):
        if not cept:
            continue
        result.append(("head", source_class, TARGET_CLASS[target[cept[0] - 1]], cept[0] - centre))
        result += [("tail", TARGET_CLASS[target[j - 1]], j - before) for before, j in pairwise(cept)]
        centre, source_class = -(-sum(cept) // len(cept)), SOURCE_CLASS[word]
    return result


def vacancies5(
    source: Sequence[int], target: Sequence[int], alignment: Alignment
) -> list[tuple[object, ...]]:
    """Of each word (head or tail, B, the vacancies that it may have, its own, those up to the one before)."""
    result: list[tuple[object, ...]] = []
    free = [False] + [True] * len(target)
    centre = 0
    for cept in cepts(source, alignment):
        for k, j in enumerate(cept):
            before = cept[k - 1] if k else centre
            origin, own = sum(free[: before + 1]), sum(free[: j + 1])
            # As many vacancies stay to the right as the cept still needs.
            last = sum(free) - (len(cept) - k - 1)
            allowed = range(origin + 1 if k else 1, last + 1)
            result.append(("tail" if k else "head", TARGET_CLASS[target[j - 1]], allowed, own, origin))
            free[j] = False
        if cept:
            centre = -(-sum(cept) // len(cept))
    return result


def probability_of(
    model: FertilityModel, t: Lexicon, place: Place
) -> Callable[[Sequence[int], Sequence[int], Alignment], float]:
    def probability(source: Sequence[int], target: Sequence[int], alignment: Alignment) -> float:
        result = fertility_part(model, t, source, target, alignment)
        if model.NUMBER == 3:
            for cept in cepts(source, alignment):
                result *= factorial(len(cept))
            for j, i in enumerate(alignment):
                result *= place(j, i, len(source), len(target)) if i else 1
        elif model.NUMBER == 4:
            for kind, *where in jumps4(source, target, alignment):
                *classes, jump = where
                table = model.head_ABD if kind == "head" else model.tail_BD
                result *= exp(table[(*classes, MIDDLE + jump)])  # type: ignore[operator]
        else:
            for kind, label, allowed, own, origin in vacancies5(source, target, alignment):
                weights = model.head_ABD[0, label] if kind == "head" else model.tail_BD[label]  # type: ignore[index]
                total = sum(weights[MIDDLE + n - origin] for n in allowed)  # type: ignore[attr-defined, operator]
                result *= weights[MIDDLE + own - origin] / total  # type: ignore[operator]
        return float(result)

    return probability


def place_of(model: FertilityModel) -> Place:
    shapes = Shapes.of(LINKS)
    assert model.place is not None

    def place(j: int, i: int, length: int, size: int) -> float:
        (shape,) = np.flatnonzero((shapes.source_size_H == length) & (shapes.target_size_H == size))
        return float(model.place.position_Q[shapes.first_H[shape] + j * (length + 1) + i])  # type: ignore[union-attr]

    return place


def brute_force(model: FertilityModel) -> Expectation:
    return Expectation(PAIRS, probability_of(model, by_pair(LINKS, LEXICON_P), place_of(model)))


@pytest.mark.parametrize("kind", KINDS)
def test_expected_counts_equal_brute_force(kind: type[FertilityModel]) -> None:
    model = random_model(kind)
    expected = brute_force(model)
    step = model.step(DIRECTION, LEXICON_P)
    expected.assert_counts(step, rel=1e-5)
    # What else is counted: fertilities, and where words go.
    counts, _, _ = model.collect(DIRECTION, LEXICON_P, START_U)
    fertility: dict[tuple[int, int], float] = defaultdict(float)
    jumps: dict[tuple[object, ...], float] = defaultdict(float)
    rooms: dict[tuple[object, ...], float] = defaultdict(float)
    for (source, target), alignments in zip(PAIRS, expected.alignments, strict=True):
        for alignment, share in alignments.items():
            for word, cept in zip(source, cepts(source, alignment), strict=True):
                fertility[word, len(cept)] += share
            if kind is Model4:
                for jump in jumps4(source, target, alignment):
                    jumps[jump] += share
            if kind is Model5:
                for side, label, allowed, own, origin in vacancies5(source, target, alignment):
                    jumps[(side, *([0] if side == "head" else []), label, own - origin)] += share  # type: ignore[operator]
                    room = len(allowed)  # type: ignore[arg-type]
                    rooms[(side, label, *([origin] if side == "head" else []), room)] += share
    assert sparse(counts.fertility_VF) == pytest.approx(
        {key: value for key, value in fertility.items() if value}
    )
    own_jumps = {("head", *key): value for key, value in sparse(counts.head_ABD).items()}
    own_jumps |= {("tail", *key): value for key, value in sparse(counts.tail_BD).items()}
    jumps = {(*key[:-1], MIDDLE + key[-1]): value for key, value in jumps.items() if value}  # type: ignore[operator]
    assert own_jumps == pytest.approx(jumps)
    own_rooms = {("head", *key): value for key, value in sparse(counts.head_room_BRR).items()}
    own_rooms |= {("tail", *key): value for key, value in sparse(counts.tail_room_BR).items()}
    assert own_rooms == pytest.approx({key: value for key, value in rooms.items() if value})


def sparse(values: np.ndarray) -> dict[tuple[int, ...], float]:
    return {key: float(value) for key, value in np.ndenumerate(values) if value > 0}


@pytest.mark.parametrize("kind", KINDS)
def test_likeliest_alignment_is_that_of_brute_force(kind: type[FertilityModel]) -> None:
    for seed in range(5):
        model = random_model(kind, seed)
        expected = brute_force(model)
        end_U, first = model.viterbi(DIRECTION, LEXICON_P).tolist(), 0
        for (_, target), alignments in zip(PAIRS, expected.alignments, strict=True):
            own = tuple(end_U[first : first + len(target)])
            first += len(target)
            # Two may be equally likely.
            assert alignments[own] == pytest.approx(max(alignments.values()))


@pytest.mark.parametrize("kind", KINDS)
def test_climbing_ends_where_no_neighbour_is_better_and_counts_the_neighbours(
    kind: type[FertilityModel],
) -> None:
    model = replace(random_model(kind), max_alignments=0)
    probability = probability_of(model, by_pair(LINKS, LEXICON_P), place_of(model))
    end_U = model.viterbi(DIRECTION, LEXICON_P)
    posterior_L = model.posteriors(DIRECTION, LEXICON_P)
    first = 0
    for (source, target), first_link in zip(PAIRS, LINKS.first_S, strict=False):
        end = tuple(end_U[first : first + len(target)].tolist())
        first += len(target)
        neighbours = {end}
        for j, k in product(range(len(target)), repeat=2):
            swapped = list(end)
            swapped[j], swapped[k] = end[k], end[j]
            neighbours.add(tuple(swapped))
        for j, i in product(range(len(target)), range(len(source) + 1)):
            neighbours.add((*end[:j], i, *end[j + 1 :]))
        values = {alignment: probability(source, target, alignment) for alignment in neighbours}
        assert max(values.values()) == values[end]
        posterior = np.zeros((len(target), len(source) + 1))
        # The least likely ones are not counted.
        for alignment, value in values.items():
            for j, i in enumerate(alignment):
                posterior[j, i] += value / sum(values.values())
        own = posterior_L[first_link : first_link + posterior.size].reshape(posterior.shape)
        np.testing.assert_allclose(own, posterior, atol=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_climbing_finds_its_way_from_an_alignment_that_cannot_be(kind: type[FertilityModel]) -> None:
    """No more words come from NULL than from others (eq. 31)."""
    of_null = np.zeros(len(DIRECTION.target_U), np.int32)
    model = replace(random_model(kind), max_alignments=0, alignment_U=of_null)
    step = model.step(DIRECTION, LEXICON_P)
    assert np.isfinite(step.log_likelihood)
    assert step.posterior_L.sum() == pytest.approx(len(of_null))


def test_the_jumps_of_model_4_are_smoothed_with_those_of_other_classes_but_the_first_cept_alone() -> None:
    model = random_model(Model4)
    counts, _, _ = model.collect(DIRECTION, LEXICON_P, START_U)
    after = model.step(DIRECTION, LEXICON_P).next
    assert isinstance(after, Model4)
    of_classes, num_jumps = model.priors.class_jump, counts.tail_BD.shape[1]
    for tables, estimated in (
        ([counts.head_ABD[0], counts.head_ABD[1]], after.head_ABD[:2]),
        ([counts.head_ABD[2]], after.head_ABD[2:]),
        ([counts.tail_BD], after.tail_BD[None]),
    ):
        common = [
            sum(float(table[b, d]) for table in tables for b in range(2)) + 0.1 for d in range(num_jumps)
        ]
        for table, found in zip(tables, estimated, strict=True):
            for b in range(2):
                own = [table[b, d] + of_classes * common[d] / sum(common) for d in range(num_jumps)]
                np.testing.assert_allclose(np.exp(found[b]), np.array(own) / sum(own))


@pytest.mark.parametrize("kind", KINDS)
def test_only_model_5_wastes_nothing(kind: type[FertilityModel]) -> None:
    """Over all outputs it sums to one; 3 and 4 put words on each other, too: they are deficient."""
    source, num_target = [0, 1], 2
    lexicon = np.random.default_rng(7).uniform(0.1, 1, (3, num_target))
    lexicon /= lexicon.sum(axis=1, keepdims=True)
    fertility_VF = np.array([[0.3, 0.7, 0, 0], [0.2, 0.3, 0.5, 0], [1, 0, 0, 0], [1, 0, 0, 0]])
    model = replace(random_model(kind), fertility_VF=fertility_VF)
    parameters, total = model.parameters(), 0.0
    # At most three words of the two, and as many of NULL.
    for m in range(1, 7):
        place = np.random.default_rng(m).uniform(0.1, 1, (m, 3))
        log_place = np.log(place / place.sum(axis=0))
        link_count = np.zeros((m, 3))
        for target in product(range(num_target), repeat=m):
            for alignment in product(range(3), repeat=m):
                pair = SentencePair(
                    np.log(lexicon[[2, 0, 1]].T[list(target)]),
                    log_place,
                    np.array(source, np.int32),
                    SOURCE_CLASS[source],
                    TARGET_CLASS[list(target)],
                    np.array(alignment, np.int32),
                    link_count,
                )
                nothing = Counts(*(np.zeros((0,) * num_axes) for num_axes in (2, 3, 2, 3, 2)))
                total += exp(walk(parameters, nothing, pair, 0.0))
    # No output at all is the sentence of no words.
    total += 0.3 * 0.2
    if kind is Model5:
        assert total == pytest.approx(1)
    else:
        assert total < 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_iterations_make_the_corpus_likelier(kind: type[FertilityModel]) -> None:
    """All alignments are summed and priors are small here, so that this is expectation maximisation."""
    direction = Direction.of(bitext_of(PAIRS * 30))
    lexicon_P = uniform_lexicon(direction.links)
    start = kind.after(Hmm.after(None, direction, lexicon_P), direction, lexicon_P)
    priors = Priors(fertility=1e-6, place=1e-6, class_jump=1e-6, jump=1e-6)
    model = replace(start, max_alignments=1000, priors=priors)
    values = []
    for _ in range(8):
        step = model.step(direction, lexicon_P)
        values.append(step.log_likelihood)
        lexicon_P = estimate_lexicon(direction.links, step.pair_P, 0.0)
        model = step.next  # type: ignore[assignment]
    for before, after in pairwise(values[1:]):
        assert after >= before - 1e-4 * abs(before)
    assert values[-1] > values[1]


def test_words_that_stand_beside_the_same_words_are_of_one_class() -> None:
    random = np.random.default_rng(1)
    # Articles 0 to 2, nouns 3 to 9, verbs 10 to 14.
    sentences = [
        [random.integers(0, 3), random.integers(3, 10), random.integers(10, 15)] * random.integers(1, 3)
        for _ in range(400)
    ]
    class_V = learn_classes(Sentences.of(sentences, 15), 3)
    for words in (class_V[:3], class_V[3:10], class_V[10:15]):
        assert len(set(words.tolist())) == 1
    assert len(set(class_V.tolist())) == 3
