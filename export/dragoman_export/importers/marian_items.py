"""The parameters of a model as Marian keeps them: an `.npz`, or a `.bin` as Firefox and Bergamot have it.

Owns both formats. A matrix that a `.bin` has in 8 bits stays in 8 bits. Must not know what parameters mean.

Shapes: N outputs, K inputs of a matrix.
"""

import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman_export.importers.files import Cursor, FormatError
from dragoman_export.reference.imported import Floats, StoredWeight

CONFIGURATION = "special:model.yml"
ALPHA = "_QuantMultA"
"""Ends the name of 127 / the largest input of a product."""
NOT_TRANSPOSED = "Wemb"
"""What the name of a matrix holds that a `.bin` has by rows as it is, and not transposed."""
_VERSION, _ENCRYPTED = 1, 2
_TYPES = {0x0404: "<f4", 0x0402: "<f2", 0x0101: "i1"}
_INTGEMM8 = (0x4101, 0x10101)
"""The types of 8-bit matrices of Firefox's fork, and of Marian."""
_MAX_AXES = 4


@dataclass(frozen=True, kw_only=True)
class Items:
    """What a file holds, by Marian's names."""

    path: Path
    configuration: bytes
    """YAML."""
    floats: dict[str, Floats] = field(default_factory=dict)
    stored: dict[str, StoredWeight] = field(default_factory=dict)
    """Matrices in 8 bits, as [outputs, inputs]."""
    alphas: dict[str, float] = field(default_factory=dict)
    """The factors by name of the product's matrix: 127 / its largest input."""


def read_items(path: Path) -> Items:
    """The parameters in a file. Raises FormatError where it is none, is cut off or of another kind."""
    try:
        with path.open("rb") as file:
            is_archive = file.read(4) == b"PK\x03\x04"
        found = dict(_read_archive(path) if is_archive else _read_binary(path))
    except OSError as error:
        raise FormatError(f"{path} can't be read: {error.strerror or error}") from error
    configuration = found.pop(CONFIGURATION, None)
    if not isinstance(configuration, np.ndarray):
        raise FormatError(f"{path} holds no {CONFIGURATION}, which a model of Marian's has")
    items = Items(path=path, configuration=configuration.tobytes().rstrip(b"\0"))
    for name, value in found.items():
        if name.endswith(ALPHA):
            items.alphas[name.removesuffix(ALPHA)] = _alpha(path, name, value)
        elif isinstance(value, StoredWeight):
            items.stored[name] = value
        elif value.dtype.kind == "f":
            items.floats[name] = value.astype(np.float32, copy=False)
        elif not name.startswith("special:"):
            raise FormatError(f"{path}: {name} is of {value.dtype}; what is read is float32 and float16")
    return items


def _alpha(path: Path, name: str, value: NDArray[np.generic] | StoredWeight) -> float:
    number = float(value.reshape(-1)[0]) if isinstance(value, np.ndarray) and value.size == 1 else math.nan
    if not 0 < number < math.inf:
        raise FormatError(f"{path}: {name} is no positive number")
    return number


def _read_archive(path: Path) -> Iterator[tuple[str, NDArray[np.generic]]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                yield name, archive[name]
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, KeyError) as error:
        raise FormatError(f"{path} is no archive of NumPy's, or is damaged: {error}") from error


def _read_binary(path: Path) -> Iterator[tuple[str, NDArray[np.generic] | StoredWeight]]:
    """Version 1: headers of all items, their names, their shapes, from a multiple of 256 on their data."""
    cursor = Cursor(path)
    version = cursor.number("Q", "its version")
    if version != _VERSION:
        why = "is encrypted" if version == _ENCRYPTED else "is no model of Marian's"
        raise FormatError(f"{path} {why}: its version is {version}, and {_VERSION} is read")
    count = cursor.number("Q", "the number of items")
    if count * 32 > cursor.size:
        raise FormatError(f"{path} is damaged: it says that it holds {count} items")
    headers = [cursor.numbers("QQQQ", "the headers") for _ in range(count)]
    raw_names = [bytes(cursor.take(length, "a name")).rstrip(b"\0") for length, *_ in headers]
    names = [raw.decode("utf-8", "replace") for raw in raw_names]
    for name, (_, _, axes, _) in zip(names, headers, strict=True):
        if not 0 < axes <= _MAX_AXES:
            raise FormatError(f"{path} is damaged: {name} has {axes} axes")
    shapes = [cursor.numbers(f"{axes}i", "a shape") for _, _, axes, _ in headers]
    cursor.take(cursor.number("Q", "padding"), "padding")
    for name, (_, kind, _, size), shape in zip(names, headers, shapes, strict=True):
        yield name, _value(path, name, kind, shape, cursor.take(size, name))


def _value(
    path: Path, name: str, kind: int, shape: tuple[int, ...], data: memoryview
) -> NDArray[np.generic] | StoredWeight:
    is_stored = kind in _INTGEMM8
    if not is_stored and kind not in _TYPES:
        raise FormatError(
            f"{path}: {name} is of type {kind:#x}; what is read is float32, float16 and intgemm8, which does "
            "not depend on the processor"
        )
    dtype = np.dtype("i1" if is_stored else _TYPES[kind])
    count = math.prod(shape)
    if min(shape) < 1 or count * dtype.itemsize + 4 * is_stored > len(data):
        raise FormatError(f"{path} is damaged: {name} is {list(shape)}, and has {len(data)} bytes")
    array = np.frombuffer(data, dtype, count)
    if not is_stored:
        return array.reshape(shape)
    (multiplier,) = struct.unpack_from("<f", data, count)
    if len(shape) != 2 or not 0 < multiplier < math.inf:
        raise FormatError(f"{path} is damaged: {name} is no matrix in 8 bits with a multiplier")
    outputs, inputs = shape if NOT_TRANSPOSED in name else shape[::-1]
    scale_N = np.full(outputs, np.float32(1) / np.float32(multiplier), np.float32)
    return StoredWeight(array.reshape(outputs, inputs), scale_N)
