"""Blocks of lines to token ids, by all cores, in the order of the lines.

Owns the processes. Each has a tokenizer of its own, and none has PyTorch.
"""

import os
import signal
import threading
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, parent_process

from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_training.data.files import TextBlock, pairs_of
from dragoman_training.data.pair_filter import FilterConfig
from dragoman_training.data.tokenized_corpus import TokenBlock, tokenize_block

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
class TokenizedBlock:
    """What became of a block of lines."""

    part_number: int
    tokens: TokenBlock
    num_read: int
    """Pairs with two sides."""
    num_one_sided: int
    """Lines with one side alone."""
    checksums: tuple[tuple[int, int], tuple[int, int]]
    """CRC-32 and length in bytes of the lines of both sides."""
    texts: tuple[list[bytes], list[bytes]] | None
    """Those of the pairs that are used."""


def tokenize_blocks(
    blocks: Iterable[TextBlock], tokenizing: Tokenizing, num_processes: int
) -> Iterator[TokenizedBlock]:
    """The blocks' pairs in their order; with one process in this one. Raises CorpusError as `pairs_of`."""
    if num_processes == 1:
        yield from map(partial(_tokenize, tokenizing, _tokenizers(tokenizing)), blocks)
        return
    waiting: deque[Future[TokenizedBlock]] = deque()
    with _processes(num_processes, tokenizing) as pool:
        for block in blocks:
            waiting.append(pool.submit(_tokenize_there, block))
            if len(waiting) > (1 + WAITING_BLOCKS) * num_processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def _processes(count: int, tokenizing: Tokenizing) -> Iterator[ProcessPoolExecutor]:
    # A process that is forked would have PyTorch's threads' locks without the threads.
    pool = ProcessPoolExecutor(
        count, mp_context=get_context("spawn"), initializer=_begin, initargs=(tokenizing,)
    )
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


_worker: tuple[Tokenizing, tuple[Tokenizer, Tokenizer]] | None = None


def _begin(tokenizing: Tokenizing) -> None:
    """A process of the pool begins: Ctrl-C is its parent's matter, and it ends where that does."""
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker = tokenizing, _tokenizers(tokenizing)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _tokenizers(tokenizing: Tokenizing) -> tuple[Tokenizer, Tokenizer]:
    source, *other = map(Tokenizer, tokenizing.models)
    return source, other[0] if other else source


def _tokenize_there(block: TextBlock) -> TokenizedBlock:
    assert _worker is not None
    tokenizing, tokenizers = _worker
    return _tokenize(tokenizing, tokenizers, block)


def _tokenize(
    tokenizing: Tokenizing, tokenizers: tuple[Tokenizer, Tokenizer], block: TextBlock
) -> TokenizedBlock:
    pairs = pairs_of(block)
    tokens = tokenize_block(
        pairs.sources,
        pairs.targets,
        tokenizers,
        max_tokens=tokenizing.max_tokens,
        pair_filter=tokenizing.pair_filter,
        num_threads=1,
    )
    texts = None
    if tokenizing.has_texts:
        sources, targets = (
            [text.encode() for text, is_used in zip(side, tokens.is_used, strict=True) if is_used]
            for side in (pairs.sources, pairs.targets)
        )
        texts = sources, targets
    return TokenizedBlock(
        part_number=block.part.number,
        tokens=tokens,
        num_read=len(pairs.targets),
        num_one_sided=pairs.num_one_sided,
        checksums=(checksum(pairs.sources), checksum(pairs.targets)),
        texts=texts,
    )


def checksum(lines: list[str]) -> tuple[int, int]:
    """CRC-32 of lines with their ends, and their length in bytes."""
    text = "".join(f"{line}\n" for line in lines).encode()
    return zlib.crc32(text), len(text)
