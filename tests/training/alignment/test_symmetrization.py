"""Symmetrised alignments against the papers' definitions on sets of links."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dragoman_training.alignment.links import METHODS, Method, symmetrize

Links = set[tuple[int, int]]

shapes = st.tuples(st.integers(0, 5), st.integers(0, 5))
matrices = shapes.flatmap(
    lambda shape: st.tuples(
        *(
            st.lists(st.booleans(), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]).map(
                lambda cells: np.array(cells, bool).reshape(shape)
            )
            for _ in range(2)
        )
    )
)


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


def test_words_grow_beside_the_intersection_and_finish_far_from_it() -> None:
    """Both believe 0-0, and 1-1 stands beside it. 4-4 is far, and so is 2-4, of which 4 is aligned then."""
    forward, backward = np.zeros((5, 5), bool), np.zeros((5, 5), bool)
    forward[0, 0] = backward[0, 0] = forward[1, 1] = forward[4, 4] = backward[2, 4] = True
    assert links_of(symmetrize(forward, backward, "grow-diag")) == {(0, 0), (1, 1)}
    assert links_of(symmetrize(forward, backward, "grow-diag-final-and")) == {(0, 0), (1, 1), (4, 4)}
    assert links_of(symmetrize(forward, backward, "grow-diag-final")) == {(0, 0), (1, 1), (4, 4), (2, 4)}
