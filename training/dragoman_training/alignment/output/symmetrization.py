"""One alignment from those of two directions (Och & Ney 2003, section 4; Koehn et al. 2003, section 3).

An alignment is a matrix of booleans: source position by target position.
"""

from typing import Literal, get_args

import numpy as np
from numba import njit
from numpy.typing import NDArray

Matrix = NDArray[np.bool_]
Method = Literal[
    "grow-diag-final-and", "grow-diag-final", "grow-diag", "intersection", "union", "forward", "backward"
]
METHODS: tuple[Method, ...] = get_args(Method)


def symmetrize(forward: Matrix, backward: Matrix, method: Method) -> Matrix:
    """Both matrices are [source, target]."""
    match method:
        case "forward":
            return forward
        case "backward":
            return backward
        case "intersection":
            return forward & backward
        case "union":
            return forward | backward
    alignment = forward & backward
    _grow(alignment, forward | backward)
    if method != "grow-diag":
        for direction in (forward, backward):
            _finish(alignment, direction, method == "grow-diag-final-and")
    return alignment


@njit(cache=True, nogil=True)
def _grow(alignment: Matrix, union: Matrix) -> None:
    """Adds links of the union beside links, as long as one has a word that is not aligned yet."""
    num_sources, num_targets = alignment.shape
    source_aligned, target_aligned = np.zeros(num_sources, np.bool_), np.zeros(num_targets, np.bool_)
    for i in range(num_sources):
        for j in range(num_targets):
            if alignment[i, j]:
                source_aligned[i] = target_aligned[j] = True
    growing = True
    while growing:
        growing = False
        for i in range(num_sources):
            for j in range(num_targets):
                if not alignment[i, j]:
                    continue
                for down in (-1, 0, 1):
                    for right in (-1, 0, 1):
                        k, n = i + down, j + right
                        if not (0 <= k < num_sources and 0 <= n < num_targets):
                            continue
                        if not union[k, n] or alignment[k, n] or (source_aligned[k] and target_aligned[n]):
                            continue
                        alignment[k, n] = source_aligned[k] = target_aligned[n] = growing = True


@njit(cache=True, nogil=True)
def _finish(alignment: Matrix, direction: Matrix, both: bool) -> None:
    """Adds links of a direction between words of which one, or both, are not aligned yet."""
    num_sources, num_targets = alignment.shape
    for i in range(num_sources):
        for j in range(num_targets):
            if direction[i, j] and not alignment[i, j]:
                source_open, target_open = not alignment[i].any(), not alignment[:, j].any()
                if (source_open and target_open) or (not both and (source_open or target_open)):
                    alignment[i, j] = True
