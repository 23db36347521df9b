"""Firefox's binary shortlists: for each source token, by its id, the target tokens that it may become.

Little endian: six 64-bit numbers (what says that it is one, a checksum of all behind it, how many of the
first target tokens every sentence may use, the most of a source token, the number of offsets, the number of
entries); offsets of 64 bits, one for each source token and the end; entries of 32 bits.
"""

import struct
from pathlib import Path

import numpy as np
from dragoman_bundle.shortlist import Shortlist
from dragoman_bundle.tokenizers.tokenizer import Tokenizer

from dragoman_export.shortlist.options import shortlist_of

MAGIC = 0xF11A48D5013417F5
_HEADER = struct.Struct("<6Q")
_SUMMED_FROM = 16
"""Bytes that the checksum does not cover: what says that it is one, and the checksum."""
_MASK = (1 << 64) - 1


class LexiconError(ValueError):
    """A file that is no lexicon that is known, is damaged, or is one of another vocabulary."""


def is_binary(path: Path) -> bool:
    """Whether a file begins as one of these. Raises LexiconError where it can't be read."""
    try:
        with path.open("rb") as file:
            return file.read(8) == MAGIC.to_bytes(8, "little")
    except OSError as error:
        raise LexiconError(f"{path} can't be read: {error.strerror}") from error


def read_binary(path: Path, source: Tokenizer, target: Tokenizer) -> Shortlist:
    """The shortlist in such a file, whole. Raises LexiconError."""
    content = path.read_bytes()
    if len(content) < _HEADER.size:
        raise LexiconError(f"{path} is cut off: it has {len(content)} bytes, and begins with {_HEADER.size}")
    _, checksum, num_first, _, num_offsets, num_entries = _HEADER.unpack_from(content)
    expected = _HEADER.size + 8 * num_offsets + 4 * num_entries
    if expected != len(content):
        raise LexiconError(f"{path} is damaged: it has {len(content)} bytes, and says that it has {expected}")
    if _checksum(content[_SUMMED_FROM:]) != checksum:
        raise LexiconError(f"{path} is damaged: its checksum is not that of what it holds")
    offsets = np.frombuffer(content, "<u8", num_offsets, _HEADER.size).astype(np.int64)
    entries = np.frombuffer(content, "<u4", num_entries, _HEADER.size + 8 * num_offsets).astype(np.int64)
    # A model that begins with a token of its own has one token more than its file.
    words = {source.vocabulary_size, source.vocabulary_size - 1}
    if num_offsets - 1 not in words or (entries >= target.vocabulary_size).any():
        raise LexiconError(
            f"{path} is of another vocabulary than the model: it is for {num_offsets - 1} source tokens and "
            f"target tokens up to {entries.max(initial=0)}, and the model has {source.vocabulary_size} and "
            f"{target.vocabulary_size}"
        )
    if offsets[0] != 0 or (np.diff(offsets) < 0).any() or offsets[-1] != num_entries:
        raise LexiconError(f"{path} is damaged: its offsets do not ascend from 0 to {num_entries}")
    rows = np.split(entries, offsets[1:-1])
    rows += [entries[:0]] * (source.vocabulary_size - len(rows))
    return shortlist_of(rows, np.arange(min(num_first, target.vocabulary_size)), source, target)


def _checksum(content: bytes) -> int:
    """Boost's combination of hashes, of all whole numbers of 64 bits."""
    seed = 0
    for number in np.frombuffer(content, "<u8", len(content) // 8).tolist():
        seed ^= (number + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & _MASK
    return seed
