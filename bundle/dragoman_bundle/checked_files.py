"""Files read within bounds, and regular ones alone: a pipe or a device may never answer, or never end.

A bundle's are held against what the manifest says of each before anything is made of it. A file system that
hangs is beyond it: a reader that must not wait for one reads in a thread that can be left. Of a graph, which
is written as Protocol Buffers, no more is read than the names of files with tensors that it does not hold
itself: serving has no onnx package, and onnxruntime opens whatever file is named.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path, PurePosixPath

from dragoman_bundle.errors import BundleFileError
from dragoman_bundle.manifest import FileEntry


def open_regular(path: Path) -> BufferedReader:
    """Opens a file to read its bytes. Raises OSError, also for a folder, a pipe, a socket or a device."""
    # Without O_NONBLOCK a pipe that nobody writes to would hold up the very opening.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
    except BaseException:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")


def read_regular(path: Path, *, max_bytes: int) -> bytes:
    """All of a file. Raises OSError as `open_regular`, and before it reads anything where it is larger."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(size + 1) if size <= max_bytes else b""
        if (found := max(size, len(content))) > max_bytes:
            excess = f"it has {found} bytes, and at most {max_bytes} are read"
            raise OSError(errno.EFBIG, excess, str(path))
    return content


_PORTION_BYTES = 1 << 20


def sha256_of(path: Path) -> str:
    """The file's SHA-256 in hexadecimal. Raises OSError."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_file(folder: Path, name: str, entry: FileEntry) -> None:
    """Raises BundleFileError where the file is not the one of the entry, or lies outside the folder."""
    _read(folder, name, entry, keeps=False)


def check_size(folder: Path, name: str, entry: FileEntry) -> None:
    """Checks an entry as `check_file` does, as far as that goes without reading the file."""
    path = _place(folder, name)
    with _naming(path):
        _check_size(path, path.stat().st_size, entry)


def read_file(folder: Path, name: str, entry: FileEntry, *, max_bytes: int) -> bytes:
    """The very bytes that were checked. Raises BundleFileError, also for more of them than `max_bytes`."""
    if entry.size > max_bytes:
        excess = f"{entry.size} bytes, and no such file has more than {max_bytes}"
        raise BundleFileError(f"{folder / name} has {excess}")
    return _read(folder, name, entry, keeps=True)


def _read(folder: Path, name: str, entry: FileEntry, *, keeps: bool) -> bytes:
    path = _place(folder, name)
    digest, portions = hashlib.sha256(), []
    with _naming(path), open_regular(path) as file:
        num_left = os.fstat(file.fileno()).st_size
        _check_size(path, num_left, entry)
        # No more than what is said, should it grow meanwhile.
        while num_left and (portion := file.read(min(num_left, _PORTION_BYTES))):
            digest.update(portion)
            num_left -= len(portion)
            if keeps:
                portions.append(portion)
    if (found := digest.hexdigest()) != entry.sha256:
        why = f"its sha256 is {found}, not {entry.sha256}"
        raise BundleFileError(f"{path} is not the file that was exported: {why}")
    return b"".join(portions)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Around what reads a file: raises BundleFileError where the file system does not give it."""
    try:
        yield
    except FileNotFoundError:
        raise BundleFileError(f"{path} is missing") from None
    except OSError as error:
        raise BundleFileError(f"{path} can't be read: {error.strerror or error}") from error


def _check_size(path: Path, size: int, entry: FileEntry) -> None:
    if size != entry.size:
        raise BundleFileError(f"{path} has {size} bytes, and the manifest says {entry.size}")


def leads_out(name: str) -> bool:
    """Whether a file of that name may lie outside its folder, or can't be a file's on every system."""
    path = PurePosixPath(name)
    # What is not printable, such as a byte of 0, no file system takes.
    is_odd = "\\" in name or ":" in name or not name.isprintable()
    return is_odd or path.is_absolute() or ".." in path.parts


def _place(folder: Path, name: str) -> Path:
    path = folder / name
    # Path.resolve raises where links go in a circle.
    if leads_out(name) or not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise BundleFileError(f"{folder}: file {name!r:.300} lies outside the bundle")
    return path


EXTERNAL_DATA = "StringStringEntryProto"
FIELDS = {
    "ModelProto": {7: "GraphProto", 20: "TrainingInfoProto", 25: "FunctionProto"},
    "TrainingInfoProto": {1: "GraphProto", 2: "GraphProto"},
    "FunctionProto": {7: "NodeProto", 11: "AttributeProto"},
    "GraphProto": {1: "NodeProto", 5: "TensorProto", 15: "SparseTensorProto"},
    "NodeProto": {5: "AttributeProto"},
    "AttributeProto": {
        5: "TensorProto",
        6: "GraphProto",
        10: "TensorProto",
        11: "GraphProto",
        22: "SparseTensorProto",
        23: "SparseTensorProto",
    },
    "SparseTensorProto": {1: "TensorProto", 2: "TensorProto"},
    "TensorProto": {13: EXTERNAL_DATA},
}
"""The numbers of the fields that lead to the name of a file, by message of onnx.proto, and what they hold."""
MAX_DEPTH = 100
"""Most messages within each other, as of Protocol Buffers' own readers."""

MAX_FIELD_NUMBER = 1 << 29
_VARINT, _LENGTH_DELIMITED = 0, 2
_SIZES = {1: 8, 5: 4}
_KEY, _VALUE = 1, 2


def external_files(graph: Path) -> set[str]:
    """The files that a graph names, as it does: relative to its folder, unless it is up to something.

    Raises OSError, and ValueError where it is no graph.
    """
    with open_regular(graph) as file:
        return set(_walk(file, os.fstat(file.fileno()).st_size, "ModelProto", depth=0))


def _walk(file: BufferedReader, end: int, message: str, *, depth: int) -> Iterator[str]:
    """The names within the message that goes on to the place `end` of the file."""
    if depth > MAX_DEPTH:
        raise ValueError(f"it has more than {MAX_DEPTH} messages within each other")
    if message == EXTERNAL_DATA:
        yield from _location(file, end)
        return
    for number, field_end in _fields(file, end):
        if number in FIELDS[message]:
            yield from _walk(file, field_end, FIELDS[message][number], depth=depth + 1)


def _location(file: BufferedReader, end: int) -> list[str]:
    """An entry's value, if its key says that it is a place; all of them, if it has several."""
    texts: dict[int, list[bytes]] = {_KEY: [], _VALUE: []}
    for number, field_end in _fields(file, end):
        if number in texts:
            texts[number].append(file.read(field_end - file.tell()))
    return [value.decode() for value in texts[_VALUE]] if b"location" in texts[_KEY] else []


def _fields(file: BufferedReader, end: int) -> Iterator[tuple[int, int]]:
    """The numbers and ends of the fields that have a length; the file then stands where the field begins."""
    while file.tell() < end:
        tag = _read_varint(file)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number < MAX_FIELD_NUMBER:
            raise ValueError("it is no graph")
        if wire_type == _VARINT:
            _read_varint(file)
            continue
        if wire_type != _LENGTH_DELIMITED and wire_type not in _SIZES:
            raise ValueError("it is no graph")
        size = _SIZES[wire_type] if wire_type in _SIZES else _read_varint(file)
        field_end = file.tell() + size
        if field_end > end:
            raise ValueError("it is no graph, or only a part of one")
        if wire_type == _LENGTH_DELIMITED:
            yield number, field_end
        file.seek(field_end)
    if file.tell() != end:
        raise ValueError("it is no graph, or only a part of one")


def _read_varint(file: BufferedReader) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            raise ValueError("it is no graph, or only a part of one")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise ValueError("it is no graph")
