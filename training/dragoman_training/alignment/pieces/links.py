"""Every link that an alignment of a corpus may have: a target token with a source token of its sentence.

Owns the sparse layout that the models count in: the distinct pairs of pieces that stand together anywhere,
and for each link the pair that it is of. A block holds whole sentences, so that what a model keeps for a link
is as large as a block and not as the corpus.

Shapes: P distinct pairs, L links of a block, U target tokens of a block.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

BLOCK_LINKS = 1 << 20
"""Links of a block, but for a sentence pair that has more."""


@dataclass(frozen=True, eq=False)
class Block:
    """The links of some sentence pairs: by target token, and within that by source position, NULL first."""

    pair_L: NDArray[np.int32]
    """Which of the distinct pairs each link is of."""
    first_U: Ids
    """The first link of each target token."""
    size_U: Ids
    """How many links each target token has: its source tokens and NULL."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Links:
    """A corpus as its links."""

    source_P: NDArray[np.int32]
    """Source piece of each distinct pair, ascending; NULL is `source_vocabulary`."""
    target_P: NDArray[np.int32]
    """Target piece of each distinct pair, ascending for one source piece."""
    blocks: tuple[Block, ...]
    source_vocabulary: int
    target_vocabulary: int


def find_links(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    source_vocabulary: int,
    target_vocabulary: int,
    block_links: int = BLOCK_LINKS,
) -> Links:
    """The links of sentence pairs, given as token ids. Every source sentence gets the NULL word in front."""
    assert len(sources) == len(targets)
    null = source_vocabulary
    source_size_S = np.fromiter((len(source) + 1 for source in sources), np.int64, len(sources))
    target_size_S = np.fromiter((len(target) for target in targets), np.int64, len(targets))
    source_tokens = _flat([[null, *source] for source in sources])
    target_tokens = _flat(targets)
    source_first_S = np.cumsum(source_size_S) - source_size_S
    target_first_S = np.cumsum(target_size_S) - target_size_S
    blocks: list[Block] = []
    keys_by_block: list[Ids] = []
    for begin, end in _cuts(source_size_S * target_size_S, block_links):
        # Each target token has a run of links, one for each token of its source sentence.
        sentence_U = np.repeat(np.arange(begin, end), target_size_S[begin:end])
        size_U = source_size_S[sentence_U]
        first_U = np.cumsum(size_U) - size_U
        place_L = np.arange(int(size_U.sum())) + np.repeat(source_first_S[sentence_U] - first_U, size_U)
        first_token = target_first_S[begin]
        target_U = target_tokens[first_token : first_token + len(size_U)]
        key_L = source_tokens[place_L] * target_vocabulary + np.repeat(target_U, size_U)
        keys, number_L = np.unique(key_L, return_inverse=True)
        keys_by_block.append(keys)
        blocks.append(Block(number_L.astype(np.int32), first_U, size_U))
    key_P = _union(keys_by_block)
    for place, (keys, block) in enumerate(zip(keys_by_block, blocks, strict=True)):
        # From the block's numbers of its pairs to the corpus' numbers.
        number_of_key = np.searchsorted(key_P, keys).astype(np.int32)
        blocks[place] = Block(number_of_key[block.pair_L], block.first_U, block.size_U)
    source_P, target_P = np.divmod(key_P, target_vocabulary)
    return Links(
        source_P=source_P.astype(np.int32),
        target_P=target_P.astype(np.int32),
        blocks=tuple(blocks),
        source_vocabulary=source_vocabulary,
        target_vocabulary=target_vocabulary,
    )


def _flat(sentences: Sequence[Sequence[int]]) -> Ids:
    return np.concatenate([np.empty(0, np.int64), *(np.asarray(s, np.int64) for s in sentences)])


def _cuts(links_S: Ids, block_links: int) -> Iterator[tuple[int, int]]:
    """Ranges of sentences with about so many links together; none without a link."""
    block_S = np.cumsum(links_S) // max(1, block_links)
    edges = [0, *(np.flatnonzero(np.diff(block_S)) + 1).tolist(), len(links_S)]
    for begin, end in pairwise(edges):
        if links_S[begin:end].any():
            yield begin, end


def _union(parts: list[Ids]) -> Ids:
    """The distinct values of sorted parts, joined two and two: no more is held at once than the result."""
    while len(parts) > 1:
        parts = [np.unique(np.concatenate(parts[place : place + 2])) for place in range(0, len(parts), 2)]
    return parts[0] if parts else np.empty(0, np.int64)
