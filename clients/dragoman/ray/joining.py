"""The parts of a corpus put together: in their order, under a name that appears when all are there."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from dragoman.jobs.output import sibling
from dragoman.ray.part_file import INTO, Corpus
from dragoman.ray.parts import Part


def join(corpus: Corpus, parts: Sequence[Part], output: Path) -> int:
    """Writes the output, and OUTPUT.errors.jsonl where any text failed; how many did."""
    partial, errors = sibling(output, ".partial"), sibling(output, ".errors.jsonl")
    failed = 0
    with sibling(errors, ".partial").open("wb") as records:
        for part in parts:
            if not corpus.failures(part).exists():
                continue
            content = corpus.failures(part).read_bytes()
            failed += content.count(b"\n")
            records.write(content)
        _sync(records)
    if corpus.kind == "parquet":
        _join_tables(corpus, parts, partial)
    else:
        with partial.open("wb") as joined:
            for part in parts:
                with corpus.written(part).open("rb") as file:
                    shutil.copyfileobj(file, joined, 1 << 20)
            _sync(joined)
    if failed:
        sibling(errors, ".partial").replace(errors)
    else:
        sibling(errors, ".partial").unlink()
        errors.unlink(missing_ok=True)
    partial.replace(output)
    return failed


def _join_tables(corpus: Corpus, parts: Sequence[Part], partial: Path) -> None:
    """Writes one row group a part; the schema is the input's and the translations' column."""
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(corpus.source).append(pyarrow.field(INTO, pyarrow.string()))
    with partial.open("wb") as joined:
        with pyarrow.parquet.ParquetWriter(joined, schema) as writer:
            for part in parts:
                with pyarrow.parquet.ParquetFile(corpus.written(part)) as file:
                    writer.write_table(file.read().cast(schema))
        _sync(joined)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
