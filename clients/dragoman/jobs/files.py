"""The files of a job: the one that it reads, those that it writes, and the containers of what is in them.

What is read must stay what it was for as long as that takes. Nothing that is written stands under its final
name before all of it does.
"""

import gzip
import hashlib
import os
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO, Self, cast

from dragoman.jobs.journal import Checkpoint, naming, open_own, sync_folder
from dragoman.jobs.units import JobError
from dragoman.portions import AUTO
from dragoman.settings import Settings
from dragoman_files.content import HEAD_BYTES
from dragoman_files.format import Container, Format, Input, Unit
from dragoman_files.opening import is_compressed


class Plain:
    """No container."""

    def pack(self, partial: BinaryIO, target: BinaryIO) -> None:
        shutil.copyfileobj(partial, target)

    def unpacked_size(self, path: Path) -> int | None:
        """Its size, modulo 2^32."""
        try:
            return path.stat().st_size % 2**32
        except FileNotFoundError:
            return None


class Gzip:
    """A file compressed by gzip."""

    def pack(self, partial: BinaryIO, target: BinaryIO) -> None:
        """Neither name nor time is in it."""
        with gzip.GzipFile(filename="", fileobj=target, mode="wb", mtime=0) as compressed:
            shutil.copyfileobj(partial, compressed)

    def unpacked_size(self, path: Path) -> int | None:
        """The size modulo 4 GiB that the file states of itself (RFC 1952, section 2.3.1)."""
        try:
            with path.open("rb") as file:
                file.seek(-min(4, file.seek(0, os.SEEK_END)), os.SEEK_END)
                return int.from_bytes(file.read(), "little")
        except FileNotFoundError:
            return None


SUFFIXES = (
    *(".partial", ".compressed", ".progress.json", ".progress.json.new"),
    *(".errors.jsonl", ".errors.jsonl.partial"),
)
"""The endings of the names of all files that a job has next to its output."""


def sibling(output: Path, suffix: str) -> Path:
    """The path next to the output that has its name and a suffix."""
    return output.with_name(output.name + suffix)


class Output:
    """OUTPUT.partial and OUTPUT.errors.jsonl.partial, which become OUTPUT and OUTPUT.errors.jsonl.

    The partial output is in no container, whatever the output will be: it can be cut back to any byte.
    """

    def __init__(self, path: Path) -> None:
        """Opens or makes the partial files. Raises JobError where another process writes them."""
        self._path = path
        self._errors_path = sibling(path, ".errors.jsonl")
        self._partial_path = sibling(path, ".partial")
        self._partial_errors_path = sibling(self._errors_path, ".partial")
        self._partial = open_own(self._partial_path, "ab")
        if sys.platform != "win32":
            import fcntl

            try:
                fcntl.flock(self._partial, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._partial.close()
                raise JobError(f"another process is writing {self._partial_path}") from None
            if not _is_named(self._partial, self._partial_path):
                self._partial.close()
                raise JobError(f"another process has just finished {self._path}")
        try:
            self._errors = open_own(self._partial_errors_path, "ab")
        except BaseException:
            self._partial.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        # Where the disk is full, closing fails as writing did, which is reported already.
        with suppress(OSError) if error is not None else nullcontext():
            self.close()

    def close(self) -> None:
        """Lets go of the partial files."""
        with closing(self._partial), closing(self._errors):
            pass

    def cut(self, checkpoint: Checkpoint) -> None:
        """Drops what was written after a checkpoint. Raises JobError where less than that is there."""
        sizes = checkpoint.output_bytes, checkpoint.errors_bytes
        for file, size in zip((self._partial, self._errors), sizes, strict=True):
            if os.fstat(file.fileno()).st_size < size:
                raise _lost(file.name)
            file.truncate(size)

    def write(self, line: bytes, error: bytes) -> None:
        """Appends a line, and the record of its error where it has one. Raises OSError, naming the file."""
        for file, content in ((self._partial, line), (self._errors, error)):
            with naming(file.name):
                file.write(content)

    def sync(self) -> None:
        """Makes sure that what was written outlives the machine. Raises OSError with the file's name."""
        for file in (self._partial, self._errors):
            with naming(file.name):
                file.flush()
                os.fsync(file.fileno())

    def publish(self, checkpoint: Checkpoint, container: Container) -> None:
        """Gives the files of a complete job their final names, the output in its container. May be called
        again after it was cut short.

        Raises JobError where neither the partial output nor the final one is all there.
        """
        published = os.fstat(self._partial.fileno()).st_size < checkpoint.output_bytes
        if published and container.unpacked_size(self._path) != checkpoint.output_bytes % 2**32:
            raise _lost(self._partial_path)
        if sys.platform == "win32":
            # There an open file keeps its name; elsewhere nobody else may write it until it has its new one.
            self.close()
        if published:
            self.discard()
            return
        if checkpoint.failed == 0:
            self._partial_errors_path.unlink(missing_ok=True)
            self._errors_path.unlink(missing_ok=True)
        elif self._partial_errors_path.stat().st_size == checkpoint.errors_bytes:
            self._partial_errors_path.replace(self._errors_path)
        if isinstance(container, Plain):
            self._partial_path.replace(self._path)
        else:
            self._pack(container)
        self.discard()
        sync_folder(self._path.parent)

    def _pack(self, container: Container) -> None:
        packed = sibling(self._path, ".compressed")
        with naming(packed), self._partial_path.open("rb") as partial, open_own(packed, "wb") as file:
            container.pack(partial, file)
            file.flush()
            os.fsync(file.fileno())
        packed.replace(self._path)

    def discard(self) -> None:
        """Removes the partial files."""
        if sys.platform == "win32":
            # There an open file can't be removed; elsewhere its lock keeps others out until all are gone.
            self.close()
        for path in (sibling(self._path, ".compressed"), self._partial_errors_path, self._partial_path):
            path.unlink(missing_ok=True)
        # What a full disk has no room for is gone with them.
        with suppress(OSError):
            self.close()


def _lost(file: Path | str) -> JobError:
    return JobError(f"{file} has lost its end; begin anew with --restart")


def _is_named(file: BinaryIO, path: Path) -> bool:
    """Whether the path still names the open file, which may have been renamed or removed since."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


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
