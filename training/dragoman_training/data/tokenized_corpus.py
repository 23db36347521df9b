"""A corpus as token ids, and which of its pairs were left out on the way.

Shapes: P pairs that are used, N tokens.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress
from typing import Any

import numpy as np
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from numpy.typing import NDArray

from dragoman_training.data.corpus import Corpus
from dragoman_training.data.pair_filter import (
    COPIES,
    DUPLICATES,
    MANY_CHARACTERS,
    UNEQUAL,
    FilterConfig,
    reasons_to_leave_out,
)
from dragoman_training.data.token_ids import TokenIds, flatten, id_type

TOO_LONG = "too long"
ONE_SIDED = "with an empty side"
REASONS = (TOO_LONG, ONE_SIDED, MANY_CHARACTERS, UNEQUAL, COPIES, DUPLICATES)
"""Why pairs are left out, in the order in which it is said."""
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
    texts: tuple[Sequence[str], Sequence[str]] | None
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


@dataclass(frozen=True, eq=False, kw_only=True)
class TokenBlock:
    """Some pairs of a corpus, without those that are left out by themselves; duplicates are still there."""

    sides: tuple[TokenIds, TokenIds]
    is_used: NDArray[np.bool_]
    """Of each pair that was given."""
    mark_P: NDArray[np.uint64]
    left_out: Counter[str]
    num_unknown: tuple[int, int]
    num_copies: int


def tokenize(
    corpus: Corpus,
    tokenizers: tuple[Tokenizer, Tokenizer],
    *,
    max_tokens: int | None,
    pair_filter: FilterConfig | None = None,
) -> TokenizedCorpus:
    """Tokenizes a corpus in memory, without pairs that the filter or `tokenize_block` leaves out."""
    pair_filter = pair_filter or FilterConfig()
    block = tokenize_block(
        corpus.sources, corpus.targets, tokenizers, max_tokens=max_tokens, pair_filter=pair_filter
    )
    left_out = block.left_out + Counter({ONE_SIDED: corpus.num_one_sided})
    sides, mark_P, is_used = block.sides, block.mark_P, block.is_used
    if pair_filter.leave_out_duplicates:
        is_first = first_of_equals(mark_P)
        left_out[DUPLICATES] = int((~is_first).sum())
        source, target = (
            TokenIds(side.ids_N, side.begin_S[is_first], side.length_S[is_first]) for side in sides
        )
        sides, mark_P = (source, target), mark_P[is_first]
        is_used = is_used.copy()
        is_used[is_used] = is_first
    return TokenizedCorpus(
        sides=sides,
        texts=(list(compress(corpus.sources, is_used)), list(compress(corpus.targets, is_used))),
        mark_P=mark_P,
        num_read=len(corpus),
        fingerprint=corpus.fingerprint(),
        left_out=left_out,
        num_unknown=block.num_unknown,
        num_copies=block.num_copies,
        shares=[Share(num_pairs=len(mark_P), weight=1.0)],
    )


def tokenize_block(
    sources: Sequence[str],
    targets: Sequence[str],
    tokenizers: tuple[Tokenizer, Tokenizer],
    *,
    max_tokens: int | None,
    pair_filter: FilterConfig,
    num_threads: int = -1,
) -> TokenBlock:
    """Tokenizes pairs, without those that the filter leaves out by themselves.

    Left out, too, are pairs with a side of more than `max_tokens` tokens, and those with a side of which
    normalization leaves nothing; an empty source is one only where its text is not, for a language model has
    none.
    """
    reasons = reasons_to_leave_out(sources, targets, pair_filter)
    indices = [index for index, reason in enumerate(reasons) if reason is None]
    texts = [[side[index] for index in indices] for side in (sources, targets)]
    ids = [
        tokenizer.encode_ids(side, num_threads=num_threads)
        for tokenizer, side in zip(tokenizers, texts, strict=True)
    ]
    limit = np.inf if max_tokens is None else max_tokens
    for index, source, target, text in zip(indices, *ids, texts[0], strict=True):
        if not target or (not source and text):
            reasons[index] = ONE_SIDED
        elif max(len(source), len(target)) > limit:
            reasons[index] = TOO_LONG
    is_kept = [reasons[index] is None for index in indices]
    is_used = np.fromiter((reason is None for reason in reasons), bool, len(reasons))
    source_ids, target_ids = (
        flatten(list(compress(side, is_kept)), id_type(tokenizer.vocabulary_size))
        for side, tokenizer in zip(ids, tokenizers, strict=True)
    )
    used = list(zip(compress(sources, is_used), compress(targets, is_used), strict=True))
    return TokenBlock(
        sides=(source_ids, target_ids),
        is_used=is_used,
        mark_P=np.fromiter(marks(used), np.uint64, len(used)),
        left_out=Counter(filter(None, reasons)),
        num_unknown=(
            int((source_ids.ids_N == tokenizers[0].unk_id).sum()),
            int((target_ids.ids_N == tokenizers[1].unk_id).sum()),
        ),
        num_copies=sum(source == target for source, target in used),
    )


def marks(pairs: Sequence[tuple[str, str]]) -> Iterator[int]:
    """A checksum of each pair's text, of 64 bits."""
    for source, target in pairs:
        digest = blake2b(f"{source}\n{target}".encode(), digest_size=8).digest()
        yield int.from_bytes(digest, "little")


def first_of_equals(mark_P: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Of each pair whether none before it has its checksum: [P]."""
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
