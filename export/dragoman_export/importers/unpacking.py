"""Unpacks files of a ZIP archive that a stranger made: never out of its folder, never more than allowed."""

import lzma
import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from dragoman_export.importers.files import FormatError

MAX_RATIO = 100
"""Most bytes that one compressed byte may stand for; weights hardly shrink, and text by ten at most."""
FREE_BYTES = 1 << 20
"""So small a file may shrink as it likes."""
_CHUNK = 1 << 20
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError)
"""What zipfile raises of files that are no archives, are broken, or can't be read without a password."""


def unpack(
    archive: Path, folder: Path, *, is_wanted: Callable[[PurePosixPath], bool], max_bytes: int
) -> None:
    """Writes the wanted files below a folder. Raises FormatError; what is there then is of no use."""
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = [entry for entry in opened.infolist() if not entry.is_dir()]
            for entry in entries:
                _check_place(archive, entry)
            wanted = [entry for entry in entries if is_wanted(PurePosixPath(entry.filename))]
            _check_sizes(archive, wanted, max_bytes)
            for entry in wanted:
                _write(archive, opened, entry, folder / entry.filename)
    except FormatError:
        raise
    except _DAMAGED as error:
        raise FormatError(f"{archive} is no ZIP archive, or is damaged: {error}") from error
    except OSError as error:
        raise FormatError(f"{archive} can't be unpacked to {folder}: {error.strerror or error}") from error


def _check_place(archive: Path, entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    path = PurePosixPath(name)
    escapes = (
        path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or not name.isprintable()
    )
    if escapes or stat.S_ISLNK(entry.external_attr >> 16):
        raise FormatError(f"{archive}: {name!r} leads out of the archive; nothing of it was unpacked")


def _check_sizes(archive: Path, entries: list[zipfile.ZipInfo], max_bytes: int) -> None:
    for name, count in Counter(entry.filename for entry in entries).most_common(1):
        if count > 1:
            raise FormatError(f"{archive} holds {name!r} {count} times")
    total = sum(entry.file_size for entry in entries)
    if total > max_bytes:
        raise FormatError(
            f"{archive} unpacks to {total / 1e6:,.0f} MB, and {max_bytes / 1e6:,.0f} MB are allowed; "
            "allow more with --max-unpacked-size"
        )
    for entry in entries:
        if entry.file_size > max(FREE_BYTES, MAX_RATIO * entry.compress_size):
            raise FormatError(
                f"{archive}: {entry.filename} is said to unpack from {entry.compress_size} bytes to "
                f"{entry.file_size}; more than {MAX_RATIO} for one is no model"
            )


def _write(archive: Path, opened: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with opened.open(entry) as source, path.open("xb") as target:
        # No more comes than the archive says; less does where it lies.
        while chunk := source.read(_CHUNK):
            target.write(chunk)
    if path.stat().st_size != entry.file_size:
        raise FormatError(
            f"{archive}: {entry.filename} is said to have {entry.file_size} bytes, and has "
            f"{path.stat().st_size}"
        )
