"""Links: the error rate and the symmetrised alignments by their definitions, and files that are wrong."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dragoman_training.alignment.links import (
    METHODS,
    GoldLinks,
    Method,
    check_range,
    format_links,
    read_gold,
    read_links,
    score_links,
    symmetrize,
)

links = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)))
corpora = st.lists(st.tuples(links, links, links), max_size=5)


@given(corpora)
def test_error_rate_by_plain_loops(corpus: list[tuple[frozenset, frozenset, frozenset]]) -> None:
    num_links = num_sure = both_sure = both_possible = 0
    for found, sure, possible in corpus:
        for i in range(4):
            for j in range(4):
                is_link, is_sure = (i, j) in found, (i, j) in sure
                is_possible = is_sure or (i, j) in possible
                num_links += is_link
                num_sure += is_sure
                both_sure += is_link and is_sure
                both_possible += is_link and is_possible
    score = score_links(
        [found for found, _, _ in corpus], [GoldLinks(sure, sure | possible) for _, sure, possible in corpus]
    )
    assert score.precision == (both_possible / num_links if num_links else 1)
    assert score.recall == (both_sure / num_sure if num_sure else 1)
    total = num_links + num_sure
    assert score.aer == pytest.approx(1 - (both_sure + both_possible) / total if total else 0)


def test_links_round_trip_and_gold_links_are_sure_or_possible(tmp_path: Path) -> None:
    path = tmp_path / "links"
    path.write_text("0-1 2p3\n\n1-0\n")
    assert read_gold(path) == [
        GoldLinks(frozenset({(0, 1)}), frozenset({(0, 1), (2, 3)})),
        GoldLinks(),
        GoldLinks(frozenset({(1, 0)}), frozenset({(1, 0)})),
    ]
    path.write_text(format_links({(2, 0), (0, 1), (10, 3)}) + "\n\n")
    assert path.read_text() == "0-1 2-0 10-3\n\n"
    assert read_links(path) == [{(2, 0), (0, 1), (10, 3)}, frozenset()]


@pytest.mark.parametrize("wrong", ["0:1", "-1-2", "0-", "0-1-2", "1p2", "٣-1", "0-99999999999"])
def test_what_is_no_link_is_told_with_its_line(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "links"
    path.write_text(f"0-0\n0-1 {wrong}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2"):
        read_links(path)


def test_link_out_of_range_is_told_with_its_line() -> None:
    check_range(Path("links"), [frozenset({(1, 2)})], [(2, 3)])
    with pytest.raises(
        ValueError, match=r"links, line 2: link 2-0 is out of range: of 2 source and 3 target"
    ):
        check_range(Path("links"), [frozenset(), frozenset({(0, 0), (2, 0)})], [(2, 3), (2, 3)])


Links = set[tuple[int, int]]

shapes = st.tuples(st.integers(0, 5), st.integers(0, 5))
matrices = shapes.flatmap(lambda shape: st.tuples(arrays(bool, shape), arrays(bool, shape)))


def by_definition(forward: Links, backward: Links, method: Method) -> Links:
    """Koehn et al. 2003, section 3, with the loops of the pseudocode that everyone's is taken from."""
    union = forward | backward
    simple = {"forward": forward, "backward": backward, "union": union, "intersection": forward & backward}
    if method in simple:
        return simple[method]
    links = forward & backward

    def source_open(i: int) -> bool:
        return all(k != i for k, _ in links)

    def target_open(j: int) -> bool:
        return all(n != j for _, n in links)

    while True:
        before = len(links)
        for i in range(5):
            for j in range(5):
                if (i, j) not in links:
                    continue
                for k in (i - 1, i, i + 1):
                    for n in (j - 1, j, j + 1):
                        if (k, n) in union and (source_open(k) or target_open(n)):
                            links.add((k, n))
        if len(links) == before:
            break
    if method == "grow-diag":
        return links
    for direction in (forward, backward):
        for k, n in sorted(direction):
            open_words = source_open(k), target_open(n)
            if all(open_words) if method == "grow-diag-final-and" else any(open_words):
                links.add((k, n))
    return links


def links_of(matrix: np.ndarray) -> Links:
    return set(zip(*(axis.tolist() for axis in matrix.nonzero()), strict=True))


@given(matrices)
def test_every_method_is_its_definition(both: tuple[np.ndarray, np.ndarray]) -> None:
    forward, backward = both
    for method in METHODS:
        found = symmetrize(forward.copy(), backward.copy(), method)
        assert links_of(found) == by_definition(links_of(forward), links_of(backward), method)
