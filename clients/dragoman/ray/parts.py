"""A corpus cut into parts: lines of a file by their bytes, rows of a Parquet file by their numbers."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from dragoman.jobs.errors import JobError

Kind = Literal["text", "jsonl", "parquet"]
"""The kind of a corpus."""
_SUFFIXES: dict[str, Kind] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jsonlines": "jsonl",
    ".parquet": "parquet",
}
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a corpus, which an actor takes at a time."""

    number: int
    """Counted from 0, in the corpus' order."""
    start: int
    """Its first byte, or row."""
    end: int
    """The first behind it."""
    first: int
    """Number of its first line or row, counted from 1."""


def kind_of(path: Path, declared: Kind | None) -> Kind:
    """The kind of a file: as `declared`, else as its name says. Raises JobError for one that is
    compressed."""
    if path.suffix.lower() in (".gz", ".zst", ".bz2", ".xz"):
        raise JobError(
            f"{path} is compressed, and parts of it can't be read alone; decompress it, or take Parquet, or "
            "translate it by `dragoman translate-file`"
        )
    return declared or _SUFFIXES.get(path.suffix.lower(), "text")


def cut(path: Path, kind: Kind, *, part_texts: int) -> list[Part]:
    """Parts of so many lines or rows, the last of fewer; none of an empty file. Raises OSError."""
    assert kind in get_args(Kind)
    ends = _row_ends(path, part_texts) if kind == "parquet" else _byte_ends(path, part_texts)
    parts: list[Part] = []
    start = 0
    for number, end in enumerate(ends):
        parts.append(Part(number=number, start=start, end=end, first=number * part_texts + 1))
        start = end
    return parts


def _byte_ends(path: Path, part_texts: int) -> Iterator[int]:
    """Where every so many lines end."""
    position = lines = end = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            breaks = chunk.count(b"\n")
            at = 0
            while lines + breaks >= part_texts:
                for _ in range(part_texts - lines):
                    at = chunk.index(b"\n", at) + 1
                breaks -= part_texts - lines
                lines, end = 0, position + at
                yield end
            lines += breaks
            position += len(chunk)
    if position > end:
        yield position


def _row_ends(path: Path, part_texts: int) -> Iterator[int]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        num_rows = file.metadata.num_rows
    yield from range(part_texts, num_rows, part_texts)
    if num_rows:
        yield num_rows


def fingerprint(path: Path) -> str:
    """The identity of a file by its size and time: to read a whole corpus would take long."""
    status = path.stat()
    return json.dumps([status.st_size, status.st_mtime_ns])
