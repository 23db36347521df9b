"""IBM model 1 by hand, and what expectation maximisation promises."""

import math

import numpy as np
import pytest

from dragoman_training.alignment.pieces.links import find_links
from dragoman_training.alignment.pieces.model1 import Iteration, train_model1
from dragoman_training.alignment.pieces.table import TranslationTable

A, B, NULL = 0, 1, 2
X, Y = 0, 1


def random_corpus(seed: int) -> tuple[list[list[int]], list[list[int]]]:
    """Sentence pairs whose targets mostly follow from their sources; some sides are empty."""
    generator = np.random.default_rng(seed)
    sources = [generator.integers(0, 12, generator.integers(0, 9)).tolist() for _ in range(60)]
    targets = [
        [token % 7 if generator.random() < 0.7 else int(generator.integers(0, 7)) for token in source[::-1]]
        for source in sources
    ]
    return sources, targets


def train(
    sources: list[list[int]], targets: list[list[int]], num_iterations: int, block_links: int = 1 << 20
) -> tuple[TranslationTable, list[Iteration]]:
    iterations: list[Iteration] = []
    links = find_links(sources, targets, source_vocabulary=12, target_vocabulary=7, block_links=block_links)
    return train_model1(links, num_iterations=num_iterations, report=iterations.append), iterations


def test_two_iterations_by_hand() -> None:
    """a -> x and a b -> x y, from t = 1/2 everywhere.

    The first pair gives x half a count from NULL and half from a. In the second each target comes from each
    of NULL, a and b by a third. So x counts 5/6 for NULL and for a, and y 1/3; b has 1/3 of each.
    """
    links = find_links([[A], [A, B]], [[X], [X, Y]], source_vocabulary=2, target_vocabulary=2)
    iterations: list[Iteration] = []
    table = train_model1(links, num_iterations=1, report=iterations.append)
    assert table.row(NULL) == pytest.approx({X: 5 / 7, Y: 2 / 7})
    assert table.row(A) == pytest.approx({X: 5 / 7, Y: 2 / 7})
    assert table.row(B) == pytest.approx({X: 1 / 2, Y: 1 / 2})
    table = train_model1(links, num_iterations=2, report=iterations.append)
    # In the second pair x comes from b by (1/2) / (5/7 + 5/7 + 1/2), and y by (1/2) / (2/7 + 2/7 + 1/2).
    x_from_b, y_from_b = (1 / 2) / (27 / 14), (1 / 2) / (15 / 14)
    assert table.row(B) == pytest.approx(
        {Y: y_from_b / (x_from_b + y_from_b), X: x_from_b / (x_from_b + y_from_b)}
    )
    x_from_a, y_from_a = 1 / 2 + (5 / 7) / (27 / 14), (2 / 7) / (15 / 14)
    assert table.row(A)[X] == pytest.approx(x_from_a / (x_from_a + y_from_a))
    assert [iteration.log_likelihood for iteration in iterations[1:]] == pytest.approx(
        [3 * math.log(1 / 2), math.log(5 / 7) + math.log(27 / 14 / 3) + math.log(15 / 14 / 3)]
    )


@pytest.mark.parametrize("seed", range(5))
def test_likelihood_never_falls(seed: int) -> None:
    _, iterations = train(*random_corpus(seed), num_iterations=12)
    likelihoods = [iteration.log_likelihood for iteration in iterations]
    assert likelihoods == sorted(likelihoods)
    assert likelihoods[-1] > likelihoods[0] + 1


def test_what_a_source_piece_gives_sums_up_to_one() -> None:
    sources, targets = random_corpus(1)
    table, _ = train(sources, targets, num_iterations=3)
    for source in {token for sentence in sources for token in sentence} | {table.null}:
        assert sum(table.row(source).values()) == pytest.approx(1)


def test_piece_that_never_stands_without_its_translation_finds_it() -> None:
    sources, targets = random_corpus(2)
    table, _ = train(sources, targets, num_iterations=20)
    found = [next(iter(table.row(source))) for source in range(12)]
    assert found == [source % 7 for source in range(12)]


@pytest.mark.parametrize("block_links", [1, 7, 100])
def test_blocks_change_nothing(block_links: int) -> None:
    corpus = random_corpus(3)
    whole, whole_iterations = train(*corpus, num_iterations=4)
    table, iterations = train(*corpus, num_iterations=4, block_links=block_links)
    np.testing.assert_array_equal(table.first_V, whole.first_V)
    np.testing.assert_allclose(
        [table.row(source)[target] for source in range(12) for target in whole.row(source)],
        [whole.row(source)[target] for source in range(12) for target in whole.row(source)],
    )
    assert iterations[-1].log_likelihood == pytest.approx(whole_iterations[-1].log_likelihood)


def test_piece_that_was_never_seen_has_an_empty_row() -> None:
    links = find_links([[A]], [[X]], source_vocabulary=2, target_vocabulary=2)
    table = train_model1(links, num_iterations=1)
    assert table.row(B) == {}
    assert table.row(A) == {X: 1}
