"""One part of a corpus: read, translated, and written to a file of its own, which is there whole or not."""

import io
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.jobs.errors import JobError
from dragoman.jobs.failure import failure_of
from dragoman.ray.parts import Kind, Part
from dragoman_files.lines import JsonLines, LineFormat, TextLines, parse_line
from dragoman_files.unit import Unit

if TYPE_CHECKING:
    import pyarrow

INTO = "translation"
"""The column or key that a translation is put into, where there are any."""


class Translator(Protocol):
    """An engine."""

    def translate(self, texts: Sequence[str | None]) -> list[tuple[str | None, bool]]:
        """For each text its translation, and whether that lacks an end; None of None."""


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The corpus that parts are of, and the folder that they go to."""

    source: Path
    kind: Kind
    column: str
    """The column or key of the texts; of bare text nothing."""
    folder: Path
    """Where the parts' files are."""

    def written(self, part: Part) -> Path:
        """The file of a part that is done."""
        return self.folder / f"{part.number:08}.out"

    def failures(self, part: Part) -> Path:
        """The record of what failed in a part, if anything did; there before the part is done."""
        return self.folder / f"{part.number:08}.errors"


def translate_part(corpus: Corpus, part: Part, translator: Translator) -> None:
    """Does a part, again or for the first time: the file is the same. Raises JobError, OSError."""
    if corpus.kind == "parquet":
        content, failures = _rows(corpus, part, translator), b""
    else:
        content, failures = _lines(corpus, part, translator)
    if failures:
        _write(corpus.failures(part), failures)
    _write(corpus.written(part), content)


def _lines(corpus: Corpus, part: Part, translator: Translator) -> tuple[bytes, bytes]:
    lines: LineFormat = JsonLines(corpus.column) if corpus.kind == "jsonl" else TextLines()
    with corpus.source.open("rb") as file:
        file.seek(part.start)
        raw = file.read(part.end - part.start)
    units = [
        parse_line(line, lines, number=number, position=part.end)
        for number, line in enumerate(io.BytesIO(raw), part.first)
    ]
    answers = translator.translate([unit.text if unit.error is None else None for unit in units])
    written, failures = [], []
    for unit, (translation, is_cut) in zip(units, answers, strict=True):
        written.append(unit.write(translation, is_cut))
        if unit.error is not None:
            failures.append(_record(unit))
    return b"".join(written), b"".join(failures)


def _record(unit: Unit) -> bytes:
    record: dict[str, Any] = {**unit.location, **asdict(failure_of(unit, None))}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _rows(corpus: Corpus, part: Part, translator: Translator) -> bytes:
    """A Parquet file of the part's rows, in memory."""
    import pyarrow
    import pyarrow.parquet

    table = read_rows(corpus.source, part)
    answers = translator.translate(table.column(corpus.column).to_pylist())
    translations = pyarrow.array([text for text, _ in answers], pyarrow.string())
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table.append_column(INTO, translations), sink)
    return bytes(sink.getvalue())


def read_rows(path: Path, part: Part) -> "pyarrow.Table":
    """The part's rows; no more row groups are read than they lie in."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        groups: list[int] = []
        first = skipped = 0
        for group in range(file.num_row_groups):
            last = first + file.metadata.row_group(group).num_rows
            if first < part.end and last > part.start:
                skipped = first if not groups else skipped
                groups.append(group)
            first = last
        table = file.read_row_groups(groups)
    return table.slice(part.start - skipped, part.end - part.start)


def check_column(path: Path, column: str) -> None:
    """Raises JobError where a Parquet file has no such column of strings, or has one of translations."""
    import pyarrow.parquet
    import pyarrow.types

    schema = pyarrow.parquet.read_schema(path)
    names = ", ".join(schema.names)
    if column not in schema.names:
        raise JobError(f"{path} has no column {column!r}; --column names one of {names}")
    kind = schema.field(column).type
    if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
        raise JobError(
            f"column {column!r} of {path} is of {kind}, not of strings; --column names another of {names}"
        )
    if INTO in schema.names:
        raise JobError(f"{path} has a column {INTO!r} already; remove or rename it")


def _write(path: Path, content: bytes) -> None:
    """Two actors may do the same part, where the first was taken for lost: each has a file of its own."""
    fresh = path.with_name(f"{path.name}.{os.uname().nodename}.{os.getpid()}")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
