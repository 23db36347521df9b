"""Which tokens of a corpus come from which, block by block, by what learns it from some of its pairs.

Shapes: N numbers, two for each link.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman_training.data.corpus import evenly_spaced
from dragoman_training.data.token_ids import TokenIds, flatten, id_type

Pair = tuple[Sequence[int], Sequence[int]]
Link = Callable[[Sequence[Pair]], Sequence[NDArray[np.int32]]]
"""Finds the links [N, 2] of each of some pairs: source and target position."""
Learn = Callable[[Sequence[Pair]], Link]
"""Learns that from pairs."""

BLOCK_PAIRS = 10_000


def link_blocks(sides: tuple[TokenIds, TokenIds], learn: Learn, max_pairs: int) -> Iterator[TokenIds]:
    """The links of all pairs, each a run of positions by twos: first a source's, then the target's.

    They are learnt from at most `max_pairs`, evenly spread.
    """
    sources, targets = sides

    def pairs(numbers: Sequence[int]) -> list[Pair]:
        return [(sources[number].tolist(), targets[number].tolist()) for number in numbers]

    count, dtype = len(sources), link_type(sides)
    link = learn(pairs(evenly_spaced(count, max_pairs)))
    for first in range(0, count, BLOCK_PAIRS):
        found = link(pairs(range(first, min(count, first + BLOCK_PAIRS))))
        yield flatten([links.ravel().tolist() for links in found], dtype)


def link_type(sides: tuple[TokenIds, TokenIds]) -> np.dtype[Any]:
    """The smallest type that holds the positions."""
    return id_type(max(int(side.length_S.max(initial=0)) for side in sides))
