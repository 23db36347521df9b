"""Rows of a translation table: their order, and what pruning leaves."""

import numpy as np

from dragoman_training.alignment.pieces import TranslationTable


def make_table() -> TranslationTable:
    pairs = [(0, 3, 0.2), (2, 1, 0.5), (0, 1, 0.7), (0, 2, 0.05), (0, 4, 0.05), (2, 0, 0.5)]
    source, target, probability = (np.array(column) for column in zip(*pairs, strict=True))
    return TranslationTable.from_pairs(
        source.astype(np.int32), target.astype(np.int32), probability.astype(np.float64), source_vocabulary=2
    )


def test_rows_have_the_likeliest_first_and_of_equals_the_lower_id() -> None:
    table = make_table()
    assert list(table.row(0).items()) == [(1, 0.7), (3, 0.2), (2, 0.05), (4, 0.05)]
    assert table.row(1) == {}
    assert table.null == 2
    assert list(table.row(2)) == [0, 1]


def test_pruning_keeps_the_likeliest_that_are_likely_enough() -> None:
    table = make_table().prune(max_targets=3, min_probability=0.0)
    assert [list(table.row(source)) for source in range(3)] == [[1, 3, 2], [], [0, 1]]
    table = make_table().prune(max_targets=3, min_probability=0.2)
    assert [list(table.row(source)) for source in range(3)] == [[1, 3], [], [0, 1]]
