"""Pairs of text to token ids: a corpus in memory, or blocks of lines by all cores, in the order of the lines.

Owns the processes. Each has a tokenizer of its own, and none has PyTorch.
"""

import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from multiprocessing import get_context, parent_process

import numpy as np
from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_training.data import token_ids
from dragoman_training.data.corpus import Checksums, Corpus, checksums
from dragoman_training.data.files import TextBlock, pairs_of
from dragoman_training.data.pair_filter import DUPLICATES, ONE_SIDED, TOO_LONG, reasons_to_leave_out
from dragoman_training.data.token_ids import TokenIds
from dragoman_training.data.vocabulary import Tokenizers
from dragoman_training.recipe.data import FilterConfig

WAITING_BLOCKS = 2
"""Blocks that wait for each core, besides the one at work."""


@dataclass(frozen=True, kw_only=True)
class Tokenizing:
    """How pairs become token ids: all that decides it, but for their text."""

    models: tuple[bytes, ...]
    """The sentencepiece model of both sides, or of either."""
    max_tokens: int | None
    pair_filter: FilterConfig
    has_texts: bool
    """Whether the pairs' texts are wanted too."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TokenBlock(token_ids.TokenizedPairs):
    """Some pairs of a corpus, without those that are left out by themselves; duplicates are still there."""

    part_number: int = 0
    checksums: Checksums
    """The checksums of the pairs with two sides."""


def tokenize(
    corpus: Corpus, tokenizers: Tokenizers, *, max_tokens: int | None, pair_filter: FilterConfig | None = None
) -> token_ids.TokenizedCorpus:
    """Tokenizes a corpus in memory, without pairs that the filter or `tokenize_pairs` leaves out."""
    pair_filter = pair_filter or FilterConfig()
    block = tokenize_pairs(corpus, tokenizers, max_tokens, pair_filter)
    sides, mark_P, texts = block.sides, block.mark_P, block.texts
    assert texts is not None
    if pair_filter.leave_out_duplicates:
        is_first = token_ids.first_of_equals(mark_P)
        block = replace(block, left_out={**block.left_out, DUPLICATES: int((~is_first).sum())})
        source, target = (TokenIds(own.ids_N, own.begin_S[is_first], own.length_S[is_first]) for own in sides)
        sides, mark_P = (source, target), mark_P[is_first]
        texts = list(compress(texts[0], is_first)), list(compress(texts[1], is_first))
    return token_ids.TokenizedCorpus(
        sides=sides,
        texts=texts,
        mark_P=mark_P,
        num_read=len(corpus),
        fingerprint=corpus.fingerprint(),
        left_out=block.left_out,
        num_unknown=block.num_unknown,
        num_copies=block.num_copies,
        shares=[(len(mark_P), 1.0)],
    )


def tokenize_pairs(
    pairs: Corpus,
    tokenizers: Tokenizers,
    max_tokens: int | None,
    pair_filter: FilterConfig,
    num_threads: int = -1,
) -> TokenBlock:
    """Tokenizes pairs, without those that the filter leaves out by themselves.

    Left out, too, are pairs with a side of more than `max_tokens` tokens, and those with a side of which
    normalization leaves nothing; an empty source is one only with a text: a language model has none.
    """
    reasons = reasons_to_leave_out(pairs.sources, pairs.targets, pair_filter)
    indices = [index for index, reason in enumerate(reasons) if reason is None]
    texts = [[side[index] for index in indices] for side in (pairs.sources, pairs.targets)]
    both = zip(tokenizers, texts, strict=True)
    ids = [tokenizer.encode_ids(side, num_threads=num_threads) for tokenizer, side in both]
    limit = np.inf if max_tokens is None else max_tokens
    for index, source, target, text in zip(indices, *ids, texts[0], strict=True):
        if not target or (not source and text):
            reasons[index] = ONE_SIDED
        elif max(len(source), len(target)) > limit:
            reasons[index] = TOO_LONG
    is_kept = [reasons[index] is None for index in indices]
    source_ids, target_ids = (
        token_ids.flatten(list(compress(side, is_kept)), token_ids.id_type(tokenizer.vocabulary_size))
        for side, tokenizer in zip(ids, tokenizers, strict=True)
    )
    sources, targets = (list(compress(side, is_kept)) for side in texts)
    used = list(zip(sources, targets, strict=True))
    return TokenBlock(
        sides=(source_ids, target_ids),
        texts=(sources, targets),
        mark_P=np.fromiter(token_ids.marks(used), np.uint64, len(used)),
        num_read=len(pairs),
        checksums=checksums(pairs),
        left_out=Counter(filter(None, reasons)) + Counter({ONE_SIDED: pairs.num_one_sided}),
        num_unknown=(
            int((source_ids.ids_N == tokenizers[0].unk_id).sum()),
            int((target_ids.ids_N == tokenizers[1].unk_id).sum()),
        ),
        num_copies=sum(source == target for source, target in used),
    )


def tokenize_blocks(
    blocks: Iterable[TextBlock], tokenizing: Tokenizing, num_processes: int
) -> Iterator[TokenBlock]:
    """The blocks' pairs in their order; with one process in this one. Raises CorpusError as `pairs_of`."""
    if num_processes == 1:
        yield from map(partial(_tokenize, tokenizing, _tokenizers(tokenizing)), blocks)
        return
    waiting: deque[Future[TokenBlock]] = deque()
    # A process that is forked would have PyTorch's threads' locks without the threads.
    pool = ProcessPoolExecutor(num_processes, get_context("spawn"), _begin, (tokenizing,))
    try:
        for block in blocks:
            waiting.append(pool.submit(_tokenize_in_worker, block))
            if len(waiting) > (1 + WAITING_BLOCKS) * num_processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


_worker: tuple[Tokenizing, Tokenizers] | None = None


def _begin(tokenizing: Tokenizing) -> None:
    """Sets up a process of the pool, which leaves Ctrl-C to its parent and ends where that does."""
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker = tokenizing, _tokenizers(tokenizing)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _tokenizers(tokenizing: Tokenizing) -> Tokenizers:
    source, *other = map(Tokenizer, tokenizing.models)
    return source, other[0] if other else source


def _tokenize_in_worker(block: TextBlock) -> TokenBlock:
    assert _worker is not None
    return _tokenize(*_worker, block)


def _tokenize(tokenizing: Tokenizing, tokenizers: Tokenizers, block: TextBlock) -> TokenBlock:
    limits = tokenizing.max_tokens, tokenizing.pair_filter
    tokens = tokenize_pairs(pairs_of(block), tokenizers, *limits, num_threads=1)
    texts = tokens.texts if tokenizing.has_texts else None
    return replace(tokens, part_number=block.part.number, texts=texts)
