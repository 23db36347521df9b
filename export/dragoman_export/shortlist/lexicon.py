"""A shortlist out of a table of translations, or out of a file that others made.

Files are Marian's `lex.s2t`, CTranslate2's `vmap` and Firefox's binary one. A line of the first is a target
piece, a source piece and the target's probability given the source. A line of the second is source pieces, a
tab, and target pieces; those behind no source piece are for every sentence. The third has ids in place of
pieces. Little endian: six 64-bit numbers (what says that it is one, a checksum of all behind it, how many of
the first target tokens every sentence may use, the most of a source token, the number of offsets, the number
of entries); offsets of 64 bits, one for each source token and the end; entries of 32 bits.
"""

import gzip
import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from dragoman_bundle.shortlist import Shortlist
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from dragoman_bundle.tokenizers.vocabulary_tokenizer import VocabularyTokenizer

from dragoman_export.options import Report, ShortlistOptions
from dragoman_training.alignment.pieces import TranslationTable

Numbers = Sequence[int] | np.ndarray
MAGIC = 0xF11A48D5013417F5
_HEADER = struct.Struct("<6Q")
_SUMMED_FROM = 16
"""Bytes that the checksum does not cover: what says that it is one, and the checksum."""
_MASK = (1 << 64) - 1


class LexiconError(ValueError):
    """A file that is no lexicon that is known, is damaged, or is one of another vocabulary."""


def read_binary(path: Path, source: Tokenizer, target: Tokenizer) -> Shortlist:
    """The shortlist in such a file, whole. Raises LexiconError."""
    content = path.read_bytes()
    if len(content) < _HEADER.size:
        raise LexiconError(f"{path} is cut off: it has {len(content)} bytes, and begins with {_HEADER.size}")
    _, expected_sum, num_first, _, num_offsets, num_entries = _HEADER.unpack_from(content)
    expected = _HEADER.size + 8 * num_offsets + 4 * num_entries
    if expected != len(content):
        raise LexiconError(f"{path} is damaged: it has {len(content)} bytes, and says that it has {expected}")
    if checksum(content[_SUMMED_FROM:]) != expected_sum:
        raise LexiconError(f"{path} is damaged: its checksum is not that of what it holds")
    offsets = np.frombuffer(content, "<u8", num_offsets, _HEADER.size).astype(np.int64)
    entries = np.frombuffer(content, "<u4", num_entries, _HEADER.size + 8 * num_offsets).astype(np.int64)
    # A model that begins with a token of its own has more tokens than its file, from that one on.
    words = {source.vocabulary_size, source.bos_id}
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


def checksum(content: bytes) -> int:
    """Boost's combination of hashes, of all whole numbers of 64 bits."""
    seed = 0
    for number in np.frombuffer(content, "<u8", len(content) // 8).tolist():
        seed ^= (number + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & _MASK
    return seed


Lines = Iterator[tuple[int, str]]
"""Lines with their numbers, from 1 on."""
NULL = "NULL"
"""What a lexicon calls the side of a word that stands for none of the other side."""
MAX_LINE = 1 << 20
"""Longest line, in bytes: what has a longer one is something else."""
MIN_KNOWN = 0.9
"""Least share of a file's pieces that the model has, for it to be of its vocabulary: a file of its own has
only those, but for pieces that were left out of the vocabulary as too rare."""


def read_lexicon(
    path: Path, source: Tokenizer, target: Tokenizer, options: ShortlistOptions, report: Report
) -> Shortlist:
    """The shortlist in a file of any kind, text gzipped or not. Raises LexiconError.

    Of a lexicon the options say how much is kept; its frequent pieces are those of the lowest ids, by which
    Marian's vocabularies are sorted. A vmap and Firefox's are kept whole.
    """
    try:
        with path.open("rb") as file:
            is_binary = file.read(8) == MAGIC.to_bytes(8, "little")
    except OSError as error:
        raise LexiconError(f"{path} can't be read: {error.strerror}") from error
    if is_binary:
        shortlist = read_binary(path, source, target)
    else:
        lines = _lines(path)
        first = next(lines, None)
        if first is None:
            raise LexiconError(f"{path} is empty")
        read = _read_map if "\t" in first[1] else _read_table
        shortlist = read(path, chain([first], lines), source, target, options)
    report(f"shortlist: {len(shortlist.target_N):,} entries of {path.name}")
    return shortlist


class _Known:
    """Counts how many of a file's pieces the model has."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found = self._all = 0

    def id_of(self, tokenizer: Tokenizer, piece: str) -> int | None:
        id_ = tokenizer.id_of(piece)
        self._all += 1
        self._found += id_ is not None
        return id_

    def check(self) -> None:
        if self._found < MIN_KNOWN * self._all or not self._found:
            raise LexiconError(
                f"{self._path} is of another vocabulary than the model, which has {self._found:,} of its "
                f"{self._all:,} pieces"
            )


def _read_table(
    path: Path, lines: Lines, source: Tokenizer, target: Tokenizer, options: ShortlistOptions
) -> Shortlist:
    known, probabilities = _Known(path), dict[tuple[int, int], float]()
    for number, line in lines:
        fields = line.split()
        try:
            to, from_, probability = fields[0], fields[1], float(fields[2])
        except (IndexError, ValueError):
            fields = []
        if len(fields) != 3 or not 0 <= probability <= 1:
            raise LexiconError(
                f"{path}, line {number}: neither a target piece, a source piece and a probability, as in "
                f"Marian's lex.s2t, nor pieces with a tab between, as in CTranslate2's vmap: {line!r:.80}"
            )
        if NULL in (to, from_):
            continue
        ids = known.id_of(source, from_), known.id_of(target, to)
        if ids[0] is not None and ids[1] is not None and probability >= options.min_probability:
            probabilities[ids[0], ids[1]] = probability
    known.check()
    pairs = np.array(list(probabilities), np.int32).reshape(-1, 2)
    table = TranslationTable.from_pairs(
        pairs[:, 0],
        pairs[:, 1],
        np.array(list(probabilities.values())),
        source_vocabulary=source.vocabulary_size,
    )
    return make_shortlist(table, np.arange(target.vocabulary_size, 0, -1), source, target, options)


def _read_map(
    path: Path, lines: Lines, source: Tokenizer, target: Tokenizer, options: ShortlistOptions
) -> Shortlist:
    known = _Known(path)
    rows: list[set[int]] = [set() for _ in range(source.vocabulary_size)]
    several: list[tuple[list[int], list[int]]] = []
    always: list[int] = []
    for number, line in lines:
        key, tab, values = line.partition("\t")
        if not tab or "\t" in values:
            raise LexiconError(
                f"{path}, line {number}: no tab between source and target pieces: {line!r:.80}"
            )
        ids = [known.id_of(target, piece) for piece in values.split(" ") if piece]
        targets = [id_ for id_ in ids if id_ is not None]
        if not key:
            always += targets
            continue
        keys = [known.id_of(source, piece) for piece in key.split(" ")]
        found = [id_ for id_ in keys if id_ is not None]
        if len(found) < len(keys):
            continue
        if len(found) == 1:
            rows[found[0]].update(targets)
        else:
            several.append((found, targets))
    known.check()
    for keys_found, targets in several:
        # Whatever stands in all of a phrase's sentences will do; a rarer piece has fewer targets.
        rows[min(keys_found, key=lambda id_: len(rows[id_]))].update(targets)
    return shortlist_of([sorted(row) for row in rows], always, source, target)


def _lines(path: Path) -> Lines:
    try:
        with path.open("rb") as file:
            is_gzipped = file.read(2) == b"\x1f\x8b"
        number = 0
        with gzip.open(path) if is_gzipped else path.open("rb") as opened:
            while raw := opened.readline(MAX_LINE):
                number += 1
                if len(raw) == MAX_LINE:
                    raise LexiconError(
                        f"{path}, line {number}: longer than {MAX_LINE} bytes; it is no lexicon"
                    )
                line = raw.decode().rstrip("\r\n")
                if line.strip():
                    yield number, line
    except UnicodeDecodeError as error:
        raise LexiconError(f"{path}, line {number}: no text in UTF-8: {error}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise LexiconError(f"{path} can't be read: {error}") from error


def make_shortlist(
    table: TranslationTable, count: Numbers, source: Tokenizer, target: Tokenizer, options: ShortlistOptions
) -> Shortlist:
    """The table's likeliest targets; `count` is how often each target token occurs, from the first id on.

    With a vocabulary that both sides share, a source token may also stand as it is: names and numbers do.
    """
    pruned = table.prune(max_targets=options.max_targets, min_probability=options.min_probability)
    frequent = np.argsort(-np.asarray(count), kind="stable")[: options.num_frequent]
    # The last row is that of no source token.
    rows = np.split(pruned.target_P, pruned.first_V[1:])[: source.vocabulary_size]
    return shortlist_of(rows, frequent, source, target)


def shortlist_of(
    targets: Sequence[Numbers], frequent: Numbers, source: Tokenizer, target: Tokenizer
) -> Shortlist:
    """The targets of each source token, and those that every sentence may use, to which its end belongs."""
    always = np.union1d(frequent, target.eos_id)
    # Some models begin a sentence with what ends another.
    never = np.setdiff1d((target.pad_id, target.bos_id, target.unk_id), target.eos_id)
    shares = source is target or (
        isinstance(source, VocabularyTokenizer) and source.has_vocabulary_of(target)
    )
    rows = []
    for token, own_targets in enumerate(targets):
        itself = [token] if shares and token not in never else []
        candidates = np.union1d(np.asarray(own_targets, np.int64), np.asarray(itself, np.int64))
        rows.append(np.setdiff1d(candidates, np.union1d(always, never)))
    dtype = np.uint16 if target.vocabulary_size <= 1 << 16 else np.uint32
    return Shortlist(
        first_V=np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.uint32),
        target_N=np.concatenate(rows).astype(dtype),
        always=np.setdiff1d(always, never).astype(dtype),
        target_vocabulary=target.vocabulary_size,
    )
