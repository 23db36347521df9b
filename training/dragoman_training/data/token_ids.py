"""Token ids of many sentences in one flat array, in memory or mapped from a file; links; corpora of them.

Shapes: N tokens of all sentences, S sentences, P pairs that are used; in links N numbers, two for each link.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman_training.data.corpus import evenly_spaced

Numbers = NDArray[np.integer[Any]]

BLOCK_SENTENCES = 100_000
"""Sentences that are lists at one time while they become flat."""


@dataclass(frozen=True, eq=False)
class TokenIds:
    """Sentences by number, each a run of the flat array."""

    ids_N: Numbers
    begin_S: Numbers
    length_S: Numbers

    def __len__(self) -> int:
        return len(self.begin_S)

    def __getitem__(self, number: int) -> Numbers:
        begin = int(self.begin_S[number])
        return self.ids_N[begin : begin + int(self.length_S[number])]


def id_type(vocabulary_size: int) -> np.dtype[Any]:
    """The smallest type that holds the vocabulary's ids."""
    return np.dtype(np.uint16 if vocabulary_size <= 1 << 16 else np.uint32)


def begins(length_S: Numbers) -> NDArray[np.int64]:
    """Where sentences of these lengths begin that stand one behind the other: [S]."""
    begin_S = np.zeros(len(length_S), np.int64)
    np.cumsum(length_S[:-1], out=begin_S[1:])
    return begin_S


def joined(parts: Iterable[TokenIds]) -> TokenIds:
    """The sentences of all parts, one part behind the other."""
    all_parts = list(parts)
    length_S = np.concatenate([part.length_S for part in all_parts])
    return TokenIds(np.concatenate([part.ids_N for part in all_parts]), begins(length_S), length_S)


def flatten(sentences: Iterable[Sequence[int]], dtype: np.dtype[Any]) -> TokenIds:
    """Lists of ids as flat arrays in memory."""
    remaining, ids, lengths = iter(sentences), [np.empty(0, dtype)], [np.empty(0, np.uint32)]
    while block := list(islice(remaining, BLOCK_SENTENCES)):
        lengths.append(np.fromiter(map(len, block), np.uint32, len(block)))
        ids.append(np.fromiter(chain.from_iterable(block), dtype, int(lengths[-1].sum())))
    length_S = np.concatenate(lengths)
    return TokenIds(np.concatenate(ids), begins(length_S), length_S)


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


SEARCHED_TOGETHER = 1 << 20
"""Checksums that are looked for at a time."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TokenizedPairs:
    """Pairs that are used, as ids without begin and end."""

    sides: tuple[TokenIds, TokenIds]
    texts: tuple[Iterable[str], Iterable[str]] | None
    """Their texts, where they are to be segmented anew."""
    mark_P: NDArray[np.uint64]
    """A checksum of each pair's text."""
    num_read: int
    """Pairs with two sides, those that were left out included."""
    left_out: Mapping[str, int]
    """How many pairs were left out, by reason."""
    num_unknown: tuple[int, int]
    """Tokens that the vocabulary does not know, of sources and of targets."""
    num_copies: int
    """Pairs that have the same text on both sides."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TokenizedCorpus(TokenizedPairs):
    """All pairs that are used."""

    links: TokenIds | None = None
    """Which tokens come from which, as `link_blocks` has it, where that was asked for."""
    fingerprint: str
    """The fingerprint that `Corpus.fingerprint` has of those that were read."""
    shares: Sequence[tuple[int, float]]
    """Of each part, in order, how many pairs it has, and how often each comes in an epoch, on average."""

    def __len__(self) -> int:
        return len(self.mark_P)


def marks(pairs: Sequence[tuple[str, str]]) -> Iterator[int]:
    """A checksum of each pair's text, of 64 bits."""
    for source, target in pairs:
        digest = blake2b(f"{source}\n{target}".encode(), digest_size=8).digest()
        yield int.from_bytes(digest, "little")


def first_of_equals(mark_P: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether no pair before has the same checksum, for each pair: [P]."""
    order = np.argsort(mark_P, kind="stable")
    is_first = np.ones(len(mark_P), bool)
    sorted_P = mark_P[order]
    is_first[order[1:][sorted_P[1:] == sorted_P[:-1]]] = False
    return is_first


def count_seen(pairs: Sequence[tuple[str, str]], mark_P: NDArray[np.uint64]) -> int:
    """How many of the pairs are among those with these checksums."""
    wanted = np.fromiter(marks(pairs), np.uint64, len(pairs))
    known = np.unique(wanted)
    is_seen = np.zeros(len(known) + 1, bool)
    # Nearly none has even the first sixteen bits of one that is wanted.
    has_bits = np.zeros(1 << 16, bool)
    has_bits[known & 0xFFFF] = True
    for first in range(0, len(mark_P), SEARCHED_TOGETHER):
        block = mark_P[first : first + SEARCHED_TOGETHER]
        block = block[has_bits[block & 0xFFFF]]
        places = np.searchsorted(known, block)
        found: NDArray[Any] = places[known[np.minimum(places, len(known) - 1)] == block]
        is_seen[found] = True
    return int(is_seen[np.searchsorted(known, wanted)].sum())
