"""The file that a job reads, which must stay what it was for as long as that takes."""

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, cast

from dragoman.jobs.content import HEAD_BYTES
from dragoman.jobs.errors import JobError
from dragoman.jobs.format import Format
from dragoman.jobs.lines import Line, parse_line
from dragoman.jobs.suffixes import is_compressed

_BROKEN_COMPRESSION = (gzip.BadGzipFile, EOFError, zlib.error)


class Source:
    """An input file, open from the first look at it to the last line.

    A file that takes its name meanwhile is none of its concern.
    """

    def __init__(self, path: Path, format_: Format) -> None:
        """Raises OSError."""
        self._path = path
        self._format = format_
        self._file = path.open("rb")
        self._stamp = self._read_stamp()
        self.fingerprint = hashlib.file_digest(self._file, "sha256").hexdigest()
        """What tells it from any other: the sha256 of all of it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def head(self) -> bytes:
        """Its first bytes, decompressed, as far as they can be: broken compression is told by `lines`."""
        stream, head = self._stream(), b""
        with suppress(*_BROKEN_COMPRESSION):
            while len(head) < HEAD_BYTES and (line := stream.readline(HEAD_BYTES - len(head))):
                head += line
        return head

    def lines(self) -> Iterator[Line]:
        """Its lines, decompressed where it is `.gz`. Raises OSError, or JobError for broken compression."""
        if is_compressed(self._path) and not os.fstat(self._file.fileno()).st_size:
            raise JobError(f"{self._path} has no byte: it is no gzip file")
        stream = self._stream()
        number = 0
        try:
            for number, raw in enumerate(stream, start=1):
                yield parse_line(raw, self._format, number=number, position=self._file.tell())
        except _BROKEN_COMPRESSION as error:
            self.check()
            if isinstance(error, gzip.BadGzipFile) and not number:
                raise JobError(
                    f"{self._path} is not compressed by gzip ({error}); name it without .gz"
                ) from error
            raise JobError(
                f"{self._path} is damaged after line {number}: {error}; begin with a whole one by --restart"
            ) from error

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
