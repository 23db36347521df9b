"""What expectation maximisation promises of IBM model 1."""

import numpy as np
import pytest

from dragoman_training.alignment.pieces.links import find_links
from dragoman_training.alignment.pieces.model1 import Iteration, train_model1
from dragoman_training.alignment.pieces.table import TranslationTable

A, B = 0, 1
X = 0


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
