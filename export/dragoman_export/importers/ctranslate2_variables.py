"""The named variables of CTranslate2's model.bin, in its binary versions 2 to 6, as floats and numbers.

Owns the layout, aliases and quantization: int8 has a scale for each row, int16 one for all, and a value is
code / scale. The file is mapped, and its variables are views of it. Must not know what the variables mean.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from dragoman_export.importers.files import Cursor, FormatError

READABLE_VERSIONS = range(2, 7)
_TYPES = ("<f4", "i1", "<i2", "<i4", "<f2", ml_dtypes.bfloat16)
"""The types by the number that stands for each from version 4 on."""
_TYPE_OF_SIZE = {4: "<f4", 2: "<i2", 1: "i1"}
"""The type by the size of an item, all that is known before version 4."""
Floats = NDArray[np.float32]
_INT16_SCALE = 1000.0
"""The scale of the oldest int16 models, which do not tell it."""


@dataclass(frozen=True)
class BinaryModel:
    """What a model.bin holds; it remembers which of that was read."""

    path: Path
    version: int
    """The version of the layout."""
    spec: str
    """Name of the kind of model, such as "TransformerSpec"."""
    revision: int
    """The revision of the kind of model."""
    variables: Mapping[str, NDArray[Any]]
    """Tensors, and single numbers without axes: views of the file."""
    aliases: Mapping[str, str]
    _read: set[str] = field(default_factory=set, init=False)

    def __contains__(self, name: str) -> bool:
        return name in self.variables or name in self.aliases

    def unread(self) -> list[str]:
        """Names that were not asked for, in order."""
        return sorted({*self.variables, *self.aliases} - self._read)

    def error(self, why: str) -> FormatError:
        """What is raised of this file."""
        return FormatError(f"{self.path}{why}")

    def count(self, prefix: str) -> int:
        """How many of `prefix_0`, `prefix_1`, … there are with something below them."""
        names = [*self.variables, *self.aliases]
        scopes = (f"{prefix}_{number}/" for number in itertools.count())
        found = itertools.takewhile(lambda scope: any(name.startswith(scope) for name in names), scopes)
        return len(list(found))

    def floats(self, name: str, *shape: int | None) -> Floats:
        """A tensor, quantized or not; None stands for any size of an axis."""
        variable = self._find(name)
        found = variable.shape
        if len(found) != len(shape) or any(
            want not in (None, size) for want, size in zip(shape, found, strict=True)
        ):
            expected = [size or "any" for size in shape]
            raise self.error(f": {name} is {list(found)}, and {expected} is expected of such a model")
        if variable.dtype.kind == "i":
            floats: Floats = np.divide(variable, self._scale(name, variable), dtype=np.float32)
        else:
            floats = variable.astype(np.float32, copy=False)
        if not np.isfinite(floats).all():
            raise FormatError(f"{self.path}: {name} holds what is no number")
        return floats

    def number(self, name: str, default: float) -> float:
        """A single number; the default where there is none."""
        if name not in self:
            return default
        variable = self._find(name)
        if variable.size != 1:
            raise FormatError(f"{self.path}: {name} is {list(variable.shape)}, and one number is expected")
        number = float(variable.item())
        if not math.isfinite(number):
            raise FormatError(f"{self.path}: {name} is {number}")
        return number

    def is_flag(self, name: str) -> bool:
        """Whether it is a truth value, which is kept as int8."""
        return name in self and self._find(name).dtype == np.int8

    def text(self, name: str, default: str) -> str:
        """A string, kept as its bytes."""
        return self._find(name).tobytes().decode(errors="replace") if name in self else default

    def _find(self, name: str) -> NDArray[Any]:
        own_name = self.aliases.get(name, name)
        if own_name not in self.variables:
            raise FormatError(f"{self.path} has no {name}, which such a model has")
        self._read.add(name)
        return self.variables[own_name]

    def _scale(self, name: str, codes: NDArray[Any]) -> Floats:
        """What the codes are divided by: one for all, or one a row."""
        scale_name = f"{self.aliases.get(name, name)}_scale"
        if scale_name not in self.variables:
            if codes.dtype != np.int16:
                raise FormatError(f"{self.path} has no {scale_name}, which {name} needs")
            return np.array(_INT16_SCALE, np.float32)
        self._read.update((scale_name, f"{name}_scale"))
        scale = self.variables[scale_name].astype(np.float32, copy=False)
        if scale.shape not in ((), (1,), codes.shape[:1]):
            raise self.error(f": {scale_name} is {list(scale.shape)}, and {name} has {codes.shape[0]} rows")
        if not (np.isfinite(scale).all() and (scale > 0).all()):
            raise FormatError(f"{self.path}: {scale_name} holds what is no scale")
        return scale.reshape(-1, *[1] * (codes.ndim - 1)) if scale.size > 1 else scale.reshape(())


def read_binary(path: Path) -> BinaryModel:
    """Reads a model.bin. Raises FormatError where it is none, not whole, or says what can't be."""
    cursor = Cursor(path)
    version = cursor.number("I", "its version")
    if version not in READABLE_VERSIONS:
        raise FormatError(
            f"{path} has binary version {version}, and versions {READABLE_VERSIONS[0]} to "
            f"{READABLE_VERSIONS[-1]} of CTranslate2 are read; it is older, newer, or no model.bin"
        )
    spec = _text(cursor, "the kind of model")
    revision = cursor.number("I", "the model's revision")
    variables: dict[str, NDArray[Any]] = {}
    for _ in range(cursor.number("I", "the number of variables")):
        name = _text(cursor, "a variable's name")
        if name in variables:
            raise FormatError(f"{path} is damaged: it has the variable {name!r} twice")
        variables[name] = _read_variable(cursor, version, name)
    aliases: dict[str, str] = {}
    if version >= 3:
        for _ in range(cursor.number("I", "the number of aliases")):
            alias = _text(cursor, "an alias")
            name = _text(cursor, "an alias")
            if name not in variables:
                raise FormatError(f"{path} is damaged: {alias!r} is said to be {name!r}, which it lacks")
            aliases[alias] = name
    if num_left := cursor.num_left:
        raise FormatError(f"{path} is damaged: {num_left} bytes follow what it says it holds")
    return BinaryModel(path, version, spec, revision, variables, aliases)


def _read_variable(cursor: Cursor, version: int, name: str) -> NDArray[Any]:
    rank = cursor.number("B", f"the axes of {name}")
    shape = tuple(cursor.number("I", f"the shape of {name}") for _ in range(rank))
    code = cursor.number("B", f"the type of {name}")
    if version >= 4:
        if code >= len(_TYPES):
            known = f"known are 0 to {len(_TYPES) - 1}"
            raise FormatError(f"{cursor.path}: {name} has numbers of type {code}; {known}")
        dtype, num_bytes = np.dtype(_TYPES[code]), cursor.number("I", f"the size of {name}")
    else:
        if code not in _TYPE_OF_SIZE:
            raise FormatError(f"{cursor.path}: {name} has numbers of {code} bytes; known are 1, 2 and 4")
        dtype, num_bytes = np.dtype(_TYPE_OF_SIZE[code]), cursor.number("I", f"the size of {name}") * code
    if math.prod(shape) * dtype.itemsize != num_bytes:
        raise FormatError(
            f"{cursor.path} is damaged: {name} is {list(shape)} numbers of {dtype.itemsize} bytes, and said "
            f"to take {num_bytes} bytes"
        )
    return np.frombuffer(cursor.take(num_bytes, f"the numbers of {name}"), dtype).reshape(shape)


def _text(cursor: Cursor, of: str) -> str:
    """The next string: its length with a byte of 0 at its end, then both."""
    raw = bytes(cursor.take(cursor.number("H", of), of))
    try:
        return raw.removesuffix(b"\0").decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{cursor.path} is damaged: {of} is no text") from error
