"""Reads model.bin, CTranslate2's file of named variables, in its binary versions 2 to 6.

Owns the layout. Must not know what the variables mean. The file is mapped, and its variables are views of it:
nothing is allocated because a header says so.
"""

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman_export.from_ctranslate2.errors import CTranslate2Error

READABLE_VERSIONS = range(2, 7)
_TYPES = ("<f4", "i1", "<i2", "<i4", "<f2", "bfloat16")
"""By the number that stands for each from version 4 on."""
_TYPE_OF_SIZE = {4: "<f4", 2: "<i2", 1: "i1"}
"""Before version 4 only the size of an item is told."""
_BFLOAT16 = "<u2"
"""Numpy has none: its bits, which are the upper half of a float's."""


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A tensor, or a single number where it has no axes."""

    array: NDArray[Any]
    """A view of the file; the bits of the numbers where they are bfloat16."""
    is_bfloat16: bool


@dataclass(frozen=True, kw_only=True)
class BinaryModel:
    """What a model.bin holds."""

    path: Path
    version: int
    """Of the layout."""
    spec: str
    """Name of the kind of model, such as "TransformerSpec"."""
    revision: int
    """Of the kind of model."""
    variables: Mapping[str, Variable]
    aliases: Mapping[str, str]
    """Other names of variables."""


def read_binary(path: Path) -> BinaryModel:
    """Reads a model.bin. Raises CTranslate2Error where it is none, not whole, or says what can't be."""
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:
        raise CTranslate2Error(f"{path} is empty") from error
    except OSError as error:
        raise CTranslate2Error(f"{path} can't be read: {error.strerror}") from error
    cursor = _Cursor(path, mapped)
    version = cursor.number("I", "its version")
    if version not in READABLE_VERSIONS:
        raise CTranslate2Error(
            f"{path} has binary version {version}, and versions {READABLE_VERSIONS[0]} to "
            f"{READABLE_VERSIONS[-1]} of CTranslate2 are read; it is older, newer, or no model.bin"
        )
    spec = cursor.text("the kind of model")
    revision = cursor.number("I", "the model's revision")
    variables: dict[str, Variable] = {}
    for _ in range(cursor.number("I", "the number of variables")):
        name = cursor.text("a variable's name")
        if name in variables:
            raise CTranslate2Error(f"{path} is damaged: it has the variable {name!r} twice")
        variables[name] = _read_variable(cursor, version, name)
    aliases: dict[str, str] = {}
    if version >= 3:
        for _ in range(cursor.number("I", "the number of aliases")):
            alias = cursor.text("an alias")
            name = cursor.text("an alias")
            if name not in variables:
                raise CTranslate2Error(f"{path} is damaged: {alias!r} is said to be {name!r}, which it lacks")
            aliases[alias] = name
    if num_left := cursor.num_left():
        raise CTranslate2Error(f"{path} is damaged: {num_left} bytes follow what it says it holds")
    return BinaryModel(
        path=path, version=version, spec=spec, revision=revision, variables=variables, aliases=aliases
    )


def _read_variable(cursor: "_Cursor", version: int, name: str) -> Variable:
    rank = cursor.number("B", f"the axes of {name}")
    shape = tuple(cursor.number("I", f"the shape of {name}") for _ in range(rank))
    code = cursor.number("B", f"the type of {name}")
    if version >= 4:
        known, kind = len(_TYPES), _TYPES[code] if code < len(_TYPES) else None
        if kind is None:
            raise CTranslate2Error(
                f"{cursor.path}: {name} has numbers of type {code}; known are 0 to {known - 1}"
            )
        num_bytes = cursor.number("I", f"the size of {name}")
    else:
        kind = _TYPE_OF_SIZE.get(code)
        if kind is None:
            raise CTranslate2Error(f"{cursor.path}: {name} has numbers of {code} bytes; known are 1, 2 and 4")
        num_bytes = cursor.number("I", f"the size of {name}") * code
    dtype = np.dtype(_BFLOAT16 if kind == "bfloat16" else kind)
    if math.prod(shape) * dtype.itemsize != num_bytes:
        raise CTranslate2Error(
            f"{cursor.path} is damaged: {name} is {list(shape)} numbers of {dtype.itemsize} bytes, and said "
            f"to take {num_bytes} bytes"
        )
    array = np.frombuffer(cursor.take(num_bytes, f"the numbers of {name}"), dtype).reshape(shape)
    return Variable(array=array, is_bfloat16=kind == "bfloat16")


class _Cursor:
    """A place in the file. Whatever is taken from there is there, or CTranslate2Error is raised."""

    def __init__(self, path: Path, mapped: mmap.mmap) -> None:
        self.path = path
        self._view = memoryview(mapped)
        self._place = 0

    def num_left(self) -> int:
        """Bytes from here to the end."""
        return len(self._view) - self._place

    def take(self, num_bytes: int, of: str) -> memoryview:
        """The next bytes, uncopied."""
        if num_bytes > self.num_left():
            raise CTranslate2Error(
                f"{self.path} is cut off or damaged: {of} should take {num_bytes} bytes from byte "
                f"{self._place} on, and {self.num_left()} are left"
            )
        self._place += num_bytes
        return self._view[self._place - num_bytes : self._place]

    def number(self, code: str, of: str) -> int:
        """The next whole number, of a type as `struct` names it."""
        (number,) = struct.unpack(f"<{code}", self.take(struct.calcsize(code), of))
        assert isinstance(number, int)
        return number

    def text(self, of: str) -> str:
        """The next string: its length with a byte of 0 at its end, then both."""
        raw = bytes(self.take(self.number("H", of), of))
        try:
            return raw.removesuffix(b"\0").decode()
        except UnicodeDecodeError as error:
            raise CTranslate2Error(
                f"{self.path} is damaged: {of}, before byte {self._place}, is no text"
            ) from error
