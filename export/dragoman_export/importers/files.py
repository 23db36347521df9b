"""Files of models from elsewhere, whatever their format: mapped and read within their bounds; JSON, tensors.

A checkpoint's tensors are read without the library that wrote them, safetensors or PyTorch, and are views of
the file. PyTorch's files are pickles, which can be told to run anything: here nothing is called but what
makes a tensor of a storage, and whatever else is named is refused. Must not know what files mean.
"""

import io
import json
import mmap
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike, NDArray


class FormatError(ValueError):
    """A model that is none of its format, is not whole, or has what our models have no place for."""


def read_bytes(path: Path) -> bytes:
    """What is in a file. Raises FormatError."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FormatError(f"{path.parent} has no {path.name}, which such a model has") from None
    except OSError as error:
        raise FormatError(f"{path} can't be read: {error.strerror}") from error


def read_text(path: Path) -> str:
    """The text in a file. Raises FormatError."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{path} is no text in UTF-8: {error}") from error


def read_json(path: Path) -> Any:
    """The value in a file. Raises FormatError."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not JSON: {error}") from error


def read_object(path: Path, *, is_needed: bool = True) -> dict[str, Any]:
    """The object in a file, or an empty one where a model may lack the file. Raises FormatError."""
    if not is_needed and not path.exists():
        return {}
    value = read_json(path)
    if not isinstance(value, dict):
        raise FormatError(f"{path} is no JSON object")
    return value


def map_file(path: Path) -> mmap.mmap:
    """The bytes of a file, of which nothing is read before it is looked at. Raises FormatError."""
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:
        raise FormatError(f"{path} is empty") from error
    except OSError as error:
        raise FormatError(f"{path} can't be read: {error.strerror or error}") from error


class Cursor:
    """A place in a file. Whatever is taken from there is there, or FormatError is raised."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._view = memoryview(map_file(path))
        self._place = 0

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self._view)

    @property
    def num_left(self) -> int:
        """Bytes from here to the end."""
        return self.size - self._place

    def take(self, num_bytes: int, of: str) -> memoryview:
        """The next bytes, uncopied; nothing is allocated because a header says so."""
        if num_bytes > self.num_left:
            raise FormatError(
                f"{self.path} is cut off or damaged: {of} should take {num_bytes} bytes from byte "
                f"{self._place} on, and {self.num_left} are left"
            )
        self._place += num_bytes
        return self._view[self._place - num_bytes : self._place]

    def numbers(self, layout: str, of: str) -> tuple[int, ...]:
        """The next whole numbers, in little-endian, as `struct` names them."""
        layout = f"<{layout}"
        return struct.unpack(layout, self.take(struct.calcsize(layout), of))

    def number(self, code: str, of: str) -> int:
        """The next whole number."""
        return self.numbers(code, of)[0]


_TYPES: tuple[tuple[str, str, DTypeLike], ...] = (
    ("F64", "Double", "<f8"),
    ("F32", "Float", "<f4"),
    ("F16", "Half", "<f2"),
    ("BF16", "BFloat16", ml_dtypes.bfloat16),
    ("I64", "Long", "<i8"),
    ("I32", "Int", "<i4"),
    ("I8", "Char", "i1"),
    ("U8", "Byte", "u1"),
    ("BOOL", "Bool", "?"),
)
"""What safetensors calls a type of numbers, and PyTorch a storage of them."""
_SAFETENSORS = {name: dtype for name, _, dtype in _TYPES}
_STORAGES = {f"{name}Storage": dtype for _, name, dtype in _TYPES}
_MAGIC = 0x1950A86A20F9469CFC6C
"""What a file of PyTorch before 1.6 begins with."""


def read_tensors(path: Path) -> Mapping[str, NDArray[Any]]:
    """The tensors of a `.safetensors` or a file of PyTorch, floats as float32. Raises FormatError."""
    mapped = map_file(path)
    try:
        if path.suffix == ".safetensors":
            return _read_safetensors(mapped)
        return _read_archive(path, mapped) if mapped[:2] == b"PK" else _read_stream(mapped)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from error
    # Whatever json, pickle and zipfile raise of damaged files, which is all but a few kinds of errors.
    except Exception as error:
        raise FormatError(
            f"{path} is damaged, or no file of weights ({type(error).__name__}: {error})"
        ) from error


def _read_safetensors(mapped: mmap.mmap) -> dict[str, NDArray[Any]]:
    (length,) = struct.unpack("<Q", mapped[:8])
    header = json.loads(mapped[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        if not 8 + length <= begin <= end <= len(mapped):
            raise FormatError(f"it is cut off: {name} should end at byte {end}, and there are {len(mapped)}")
        numbers = _numbers(memoryview(mapped)[begin:end], _known(_SAFETENSORS, entry["dtype"], name))
        tensors[name] = numbers.reshape(entry["shape"])
    return tensors


@dataclass(frozen=True)
class _Storage:
    key: str
    dtype: DTypeLike


@dataclass(frozen=True)
class _Tensor:
    """A view of a storage."""

    storage: _Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]

    def of(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """The view. Raises FormatError where it would reach beyond the storage."""
        last = self.offset + sum((n - 1) * step for n, step in zip(self.size, self.stride, strict=True))
        is_empty = 0 in self.size
        if min((self.offset, *self.size, *self.stride)) < 0 or not (is_empty or last < len(numbers)):
            raise FormatError(
                f"a tensor ends at {last} of storage {self.storage.key}, of {len(numbers)} numbers"
            )
        strides = [step * numbers.itemsize for step in self.stride]
        return np.lib.stride_tricks.as_strided(numbers[self.offset :], self.size, strides, writeable=False)


class _Unpickler(pickle.Unpickler):
    """Knows nothing by name but tensors, their storages and the dictionary that they lie in."""

    def find_class(self, module: str, name: str) -> Any:
        match module, name:
            case "collections", "OrderedDict":
                return OrderedDict
            case "torch._utils", "_rebuild_tensor_v2":
                return lambda storage, offset, size, stride, *_: _Tensor(storage, offset, size, stride)
            case "torch._utils", "_rebuild_parameter":
                return lambda tensor, *_: tensor
            case "torch", name if name in _STORAGES:
                return name
        raise FormatError(
            f"it names {module}.{name}, which no weights need, and may be made to harm whoever loads "
            "it; convert it to safetensors where you trust it"
        )

    def persistent_load(self, pid: Any) -> _Storage:
        kind, storage, key, _, _, *view = pid
        if kind != "storage" or (view and view[0] is not None):
            raise FormatError(f"it holds {kind!r}, which is no storage of its own")
        return _Storage(str(key), _known(_STORAGES, storage, f"storage {key}"))


def _read_archive(path: Path, mapped: mmap.mmap) -> dict[str, NDArray[Any]]:
    """Reads what PyTorch 1.6 and later write: a pickle, and an uncompressed file for each storage."""
    with zipfile.ZipFile(path) as archive:
        pickled = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
        folder = pickled.removesuffix("data.pkl")

        def find(storage: _Storage) -> NDArray[Any]:
            entry = archive.getinfo(f"{folder}data/{storage.key}")
            if entry.compress_type != zipfile.ZIP_STORED:
                raise FormatError(f"{entry.filename} is compressed, which PyTorch's own never is")
            # The local header has a name and padding of lengths of its own.
            sizes = struct.unpack("<HH", mapped[entry.header_offset + 26 : entry.header_offset + 30])
            begin = entry.header_offset + 30 + sum(sizes)
            return _numbers(memoryview(mapped)[begin : begin + entry.file_size], storage.dtype)

        return _resolve(_Unpickler(io.BytesIO(archive.read(pickled))).load(), find)


def _read_stream(mapped: mmap.mmap) -> dict[str, NDArray[Any]]:
    """Reads what PyTorch before 1.6 wrote: pickles, the last one of the keys of storages, which then
    follow."""
    if _Unpickler(mapped).load() != _MAGIC:
        raise FormatError("it is neither a file of PyTorch nor of safetensors")
    _Unpickler(mapped).load(), _Unpickler(mapped).load()  # The format's version, and the machine's kind.
    held = _Unpickler(mapped).load()
    dtypes = {tensor.storage.key: tensor.storage.dtype for tensor in _tensors(held).values()}
    storages = {}
    for key in map(str, _Unpickler(mapped).load()):
        (count,) = struct.unpack("<q", mapped.read(8))
        size = count * np.dtype(dtypes[key]).itemsize
        storages[key] = _numbers(memoryview(mapped)[mapped.tell() : mapped.tell() + size], dtypes[key])
        mapped.seek(size, io.SEEK_CUR)
    return _resolve(held, lambda storage: storages[storage.key])


def _tensors(held: Any) -> dict[str, _Tensor]:
    """What was pickled, if that is tensors by their names."""
    if not isinstance(held, dict) or not all(isinstance(tensor, _Tensor) for tensor in held.values()):
        raise FormatError("it holds something else than tensors by their names")
    return {str(name): tensor for name, tensor in held.items()}


def _resolve(held: Any, find: Callable[[_Storage], NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Tensors that are the same view of a storage are the same array."""
    storages: dict[_Storage, NDArray[Any]] = {}
    arrays: dict[_Tensor, NDArray[Any]] = {}
    tensors = _tensors(held)
    for tensor in tensors.values():
        if tensor.storage not in storages:
            storages[tensor.storage] = find(tensor.storage)
        if tensor not in arrays:
            arrays[tensor] = tensor.of(storages[tensor.storage])
    return {name: arrays[tensor] for name, tensor in tensors.items()}


def _known(types: Mapping[str, DTypeLike], name: Any, of: str) -> DTypeLike:
    if name not in types:
        raise FormatError(f"{of} has numbers of type {name}; known are {', '.join(types)}")
    return types[name]


def _numbers(raw: memoryview, dtype: DTypeLike) -> NDArray[Any]:
    """Floats as float32, which is a view where they are; others as they are."""
    numbers = np.frombuffer(raw, dtype)
    return numbers if numbers.dtype.kind in "biu" else numbers.astype(np.float32, copy=False)
