"""The file that a job reads, which must stay what it was for as long as that takes."""

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Self, cast

from dragoman.jobs.output import Gzip, Plain
from dragoman.jobs.units import JobError
from dragoman.portions import AUTO
from dragoman.settings import Settings
from dragoman_files.content import HEAD_BYTES
from dragoman_files.format import Container, Format, Input, Unit
from dragoman_files.opening import is_compressed

_BROKEN_COMPRESSION = (gzip.BadGzipFile, EOFError, zlib.error)


class Source:
    """An input file, open from the first look at it to the last line.

    A file that takes its name meanwhile is none of its concern.
    """

    def __init__(self, path: Path, format_: Format, settings: Settings) -> None:
        """Raises OSError."""
        self._settings = settings
        self._path = path
        self._format = format_
        self._file = path.open("rb")
        self._stamp = self._read_stamp()
        self.fingerprint = hashlib.file_digest(self._file, "sha256").hexdigest()
        """Tells the input from any other: the sha256 of all of it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def head(self) -> bytes:
        """The first bytes, decompressed as far as they can be: `units` reports broken compression."""
        stream, head = self._stream(), b""
        with suppress(*_BROKEN_COMPRESSION):
            while len(head) < HEAD_BYTES and (line := stream.readline(HEAD_BYTES - len(head))):
                head += line
        return head

    def units(self) -> Iterator[Unit]:
        """The units of the input, decompressed where it is `.gz`.

        Raises JobError at once for what is no file of its format; OSError, or JobError for broken
        compression, when it is met.
        """
        if is_compressed(self._path) and not os.fstat(self._file.fileno()).st_size:
            raise JobError(f"{self._path} has no byte: it is no gzip file")
        source = Input(
            name=str(self._path),
            stream=self._stream(),
            position=self._file.tell,
            source_language=None if self._settings.source == AUTO else self._settings.source,
            target_language=self._settings.target,
        )
        try:
            units = iter(self._format.units(source))
        except _BROKEN_COMPRESSION as error:
            raise self._damaged(error, 0) from error
        return self._read(units)

    def _read(self, units: Iterator[Unit]) -> Iterator[Unit]:
        number = 0
        try:
            for unit in units:
                number = unit.number
                yield unit
        except _BROKEN_COMPRESSION as error:
            raise self._damaged(error, number) from error

    def _damaged(self, error: Exception, number: int) -> JobError:
        self.check()
        if isinstance(error, gzip.BadGzipFile) and not number:
            return JobError(f"{self._path} is not compressed by gzip ({error}); name it without .gz")
        damage = f"damaged after {self._format.noun.removesuffix('s')} {number}: {error}"
        return JobError(f"{self._path} is {damage}; begin with a whole one by --restart")

    def container(self, output: Path) -> Container:
        if self._format.package is not None:
            return self._format.package(self._file)
        return Gzip() if is_compressed(output) else Plain()

    def _stream(self) -> BinaryIO:
        self._file.seek(0)
        return cast(BinaryIO, gzip.GzipFile(fileobj=self._file)) if is_compressed(self._path) else self._file

    def check(self) -> None:
        """Raises JobError where somebody has written to it since it was opened.

        What was read before a check that passes is of one file.
        """
        if self._read_stamp() != self._stamp:
            raise JobError(
                f"{self._path} was changed while the job read it. What is done of it as it was is kept: give "
                "it back its former content and call again to go on, or begin anew with --restart"
            )

    def _read_stamp(self) -> tuple[int, int]:
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns
