"""A corpus as token ids, and which of its pairs were left out on the way.

Shapes: P pairs that are used.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman_training.data.pair_filter import (
    COPIES,
    DUPLICATES,
    MANY_CHARACTERS,
    OTHER_SOURCE,
    OTHER_TARGET,
    UNEQUAL,
)
from dragoman_training.data.token_ids import TokenIds

TOO_LONG = "too long"
ONE_SIDED = "with an empty side"
REASONS = (TOO_LONG, ONE_SIDED, MANY_CHARACTERS, UNEQUAL, COPIES, DUPLICATES, OTHER_SOURCE, OTHER_TARGET)
"""Why pairs are left out, in the order in which it is reported."""
SEARCHED_TOGETHER = 1 << 20
"""Checksums that are looked for at a time."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Share:
    """Pairs of one part of a corpus, which stand together."""

    num_pairs: int
    weight: float
    """How often each comes in an epoch, on average."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TokenizedCorpus:
    """The pairs that are used, as ids without begin and end."""

    sides: tuple[TokenIds, TokenIds]
    """Sources and targets."""
    texts: tuple[Iterable[str], Iterable[str]] | None
    """Their texts, where they are to be segmented anew."""
    links: TokenIds | None = None
    """Which tokens come from which, as `link_blocks` has it, where that was asked for."""
    mark_P: NDArray[np.uint64]
    """A checksum of each pair's text."""
    num_read: int
    """Pairs with two sides, those that were left out included."""
    fingerprint: str
    """As `Corpus.fingerprint` says it of those."""
    left_out: Mapping[str, int]
    """How many pairs were left out, by reason."""
    num_unknown: tuple[int, int]
    """Tokens that the vocabulary does not know, of sources and of targets."""
    num_copies: int
    """Pairs that have the same text on both sides."""
    shares: Sequence[Share]
    """The parts, in order."""

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


def show_left_out(left_out: Mapping[str, int]) -> str:
    """How many pairs were left out by reason, for people; empty for none."""
    return ", ".join(f"{left_out[reason]:,} {reason}" for reason in REASONS if left_out.get(reason))
