"""Sentence pairs from files: line-parallel, tab-separated, gzipped, or a Hugging Face data set.

A fingerprint says which pairs a corpus holds. That of two texts in a row follows from those of each, so that
blocks may be read one by one.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # What tokenizes in a process of its own needs no PyTorch, which settings bring.
    from dragoman_training.recipe.settings import DataConfig
from functools import lru_cache


class CorpusError(ValueError):
    """Training or validation files that can't be used; the message names file and line."""


@dataclass(frozen=True)
class Corpus:
    """Sentence pairs, line by line; a language model's have empty sources."""

    sources: list[str]
    targets: list[str]
    num_one_sided: int = 0
    """Pairs of the files that were left out because a side is empty."""

    def __len__(self) -> int:
        return len(self.sources)

    def fingerprint(self) -> str:
        """How many pairs there are and a checksum of their text, by which a resumed run knows them again."""
        checksum = 0
        for line in chain(self.sources, self.targets):
            checksum = zlib.crc32(f"{line}\n".encode(), checksum)
        return show_fingerprint(len(self), checksum)


def show_fingerprint(num_pairs: int, checksum: int) -> str:
    """A number of pairs and a CRC-32 of their text, as checkpoints keep them."""
    return f"{num_pairs:,} pairs, checksum {checksum:08x}"


def read_corpus(data: "DataConfig", split: str, folder: Path) -> Corpus:
    """Reads the `train` or `valid` pairs; relative paths start at `folder`.

    Pairs with an empty side are left out. Raises CorpusError for files that can't be read, that are not
    UTF-8, that have different numbers of lines or no pair at all, and for a data set that can't be loaded.
    """
    if not data.has_source:
        return _one_side(data, split, folder)
    files = list(zip(getattr(data, f"{split}_source"), getattr(data, f"{split}_target"), strict=True))
    tables = getattr(data, f"{split}_tsv")
    if data.hugging_face and not files and not tables:
        pairs = list(_hugging_face_pairs(data, split, folder))
    else:
        pairs = [pair for path in tables for pair in _tsv_pairs(folder / path)]
        for source, target in files:
            pairs += _parallel_pairs(folder / source, folder / target)
    return _both_sides(pairs, f"data: the {split} files")


def read_parallel(source_path: Path, target_path: Path) -> Corpus:
    """The pairs of two files that match line by line. Raises CorpusError as `read_corpus` does."""
    return _both_sides(_parallel_pairs(source_path, target_path), f"{source_path} and {target_path}")


def evenly_spaced(length: int, count: int) -> list[int]:
    """At most `count` places, evenly spread over a list of that length."""
    count = min(count, length)
    return [index * length // count for index in range(count)]


def _both_sides(pairs: Iterable[tuple[str, str]], files: str) -> Corpus:
    """Those with something on either side."""
    stripped = [(source.strip(), target.strip()) for source, target in pairs]
    complete = [(source, target) for source, target in stripped if source and target]
    one_sided = sum(bool(source) != bool(target) for source, target in stripped)
    if not complete:
        raise CorpusError(f"{files} hold no sentence pair")
    return Corpus([source for source, _ in complete], [target for _, target in complete], one_sided)


def _one_side(data: "DataConfig", split: str, folder: Path) -> Corpus:
    """The target sides alone."""
    lines = [line.strip() for path in getattr(data, f"{split}_target") for line in read_lines(folder / path)]
    targets = [line for line in lines if line]
    if not targets:
        raise CorpusError(f"data: the {split} files hold no sentence")
    return Corpus([""] * len(targets), targets)


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file, `.gz` or not, without their ends. Raises CorpusError."""
    opener = gzip.open if path.suffix == ".gz" else open
    lines = []
    try:
        with opener(path, "rb") as stream:
            for number, raw in enumerate(stream, start=1):
                try:
                    lines.append(raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n"))
                except UnicodeDecodeError as error:
                    raise CorpusError(f"{path}, line {number}: not UTF-8: {error}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"{path}: can't be read: {error}") from error
    return lines


def _parallel_pairs(source_path: Path, target_path: Path) -> Iterator[tuple[str, str]]:
    sources, targets = read_lines(source_path), read_lines(target_path)
    if len(sources) != len(targets):
        raise CorpusError(
            f"{source_path} has {len(sources)} lines, but {target_path} has {len(targets)}: "
            "they must match line by line"
        )
    return zip(sources, targets, strict=True)


def _tsv_pairs(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if line and len(columns) < 2:
            raise CorpusError(f"{path}, line {number}: no tab between source and target")
        if line:
            yield columns[0], columns[1]


def _hugging_face_pairs(data: "DataConfig", split: str, folder: Path) -> Iterator[tuple[str, str]]:
    try:
        import datasets
    except ImportError as error:
        hint = "run `make install` in the source checkout, which brings the extra hugging-face"
        raise CorpusError(f"data.hugging_face needs {error.name}, which is not installed: {hint}") from error
    local = folder / data.hugging_face
    try:
        rows = datasets.load_dataset(
            str(local) if local.exists() else data.hugging_face,
            data.hugging_face_config or None,
            split="train" if split == "train" else "validation",
        )
    # Whatever lies below it may fail: the network, the hub, a cache, a parser of files.
    except Exception as error:
        raise CorpusError(f"{data.hugging_face}: can't be loaded: {error}") from error
    if "translation" not in rows.column_names:
        raise CorpusError(
            f"{data.hugging_face}: has no column `translation`, only {', '.join(rows.column_names)}"
        )
    for number, row in enumerate(rows["translation"]):
        if row is None:
            raise CorpusError(f"{data.hugging_face}: row {number} of {split} has no translation")
        if missing := {data.source_language, data.target_language} - row.keys():
            raise CorpusError(f'{data.hugging_face}: has no "{missing.pop()}", only {", ".join(row)}')
        # What a side lacks is an empty side.
        yield row[data.source_language] or "", row[data.target_language] or ""


_POLYNOMIAL = 0xEDB88320


def combine_crc32(first: int, second: int, second_length: int) -> int:
    """CRC-32 of one text and another behind it; `second_length` is the other's, in bytes.

    Zeros behind a text multiply its checksum, as a polynomial over GF(2), by a power of x.
    """
    return _multiply(_power(8 * second_length), first) ^ second


@lru_cache(maxsize=4096)
def _power(exponent: int) -> int:
    """x to the power, modulo CRC-32's polynomial; the lowest power is the highest bit."""
    result, square = 1 << 31, 1 << 30
    while exponent:
        if exponent & 1:
            result = _multiply(result, square)
        square = _multiply(square, square)
        exponent >>= 1
    return result


def _multiply(one: int, other: int) -> int:
    product = 0
    for bit in range(31, -1, -1):
        if one >> bit & 1:
            product ^= other
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return product
