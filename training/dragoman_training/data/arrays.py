"""Arrays in files of a folder: written block by block, read through the system's memory of the disk.

Shapes: S texts.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dragoman_training.data.cache import CorpusCacheError
from dragoman_training.data.token_ids import Numbers


class ArrayFile:
    """A one-dimensional array that grows at its end."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._stream = path.open("wb")
        self.length = 0

    def append(self, values: NDArray[Any]) -> None:
        """Writes some more values. Raises OSError where the disk is full."""
        self._stream.write(np.ascontiguousarray(values, self._dtype).data)
        self.length += len(values)

    def __enter__(self) -> "ArrayFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stream:
            if error is None:
                self._stream.flush()
                os.fsync(self._stream.fileno())


def write_array(path: Path, values: NDArray[Any]) -> None:
    """Writes a whole array."""
    with ArrayFile(path, values.dtype) as file:
        file.append(values)


def map_array(path: Path, dtype: np.dtype[Any], length: int) -> NDArray[Any]:
    """The array of a file. Raises CorpusCacheError where that has another length."""
    found = path.stat().st_size if path.is_file() else None
    if found != length * dtype.itemsize:
        raise CorpusCacheError(
            f"{path} is damaged: it has {found} bytes instead of {length * dtype.itemsize}; delete the "
            f"folder {path.parent}, and it is made anew"
        )
    if not length:
        return np.empty(0, dtype)
    # Without the subclass, whose every slice is made in Python.
    return np.asarray(np.memmap(path, dtype, mode="r", shape=(length,)))


class MappedTexts(Sequence[str]):
    """Texts that stand in a file one behind the other."""

    def __init__(self, bytes_: NDArray[np.uint8], begin_S: Numbers, length_S: Numbers) -> None:
        self._bytes, self._begin_S, self._length_S = bytes_, begin_S, length_S

    def __len__(self) -> int:
        return len(self._begin_S)

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[index] for index in range(*number.indices(len(self)))]
        begin = int(self._begin_S[number])
        return self._bytes[begin : begin + int(self._length_S[number])].tobytes().decode()
