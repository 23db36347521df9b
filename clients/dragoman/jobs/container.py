"""The container of the bytes that a job writes: none, gzip, or the zip of a document."""

import gzip
import os
import shutil
from pathlib import Path
from typing import BinaryIO, Protocol


class Container(Protocol):
    """Packs what a job has written when it is complete: until then it can be cut back to any byte."""

    def pack(self, partial: BinaryIO, target: BinaryIO) -> None:
        """Writes the packed output. The same bytes give the same bytes."""

    def unpacked_size(self, path: Path) -> int | None:
        """The size of a packed file before it was packed, modulo 2^32; None where there is none."""


class Plain:
    """No container."""

    def pack(self, partial: BinaryIO, target: BinaryIO) -> None:
        """Copies it."""
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
