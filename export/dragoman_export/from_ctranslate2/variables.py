"""A model's variables by name, as floats, flags and numbers; and which of them nobody has asked for.

Owns aliases and quantization: int8 has a scale for each row, int16 one for all, and a value is code / scale.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dragoman_export.from_ctranslate2.binary import BinaryModel, Variable
from dragoman_export.from_ctranslate2.errors import CTranslate2Error

Floats = NDArray[np.float32]

_INT16_SCALE = 1000.0
"""Of the oldest int16 models, which do not tell it."""


class Variables:
    """Looks variables up, and remembers which were read."""

    def __init__(self, model: BinaryModel) -> None:
        self._model = model
        self._unread = {*model.variables, *model.aliases}

    def __contains__(self, name: str) -> bool:
        return name in self._model.variables or name in self._model.aliases

    def unread(self) -> list[str]:
        """Names that were not asked for, in order."""
        return sorted(self._unread)

    def count(self, prefix: str) -> int:
        """How many of `prefix_0`, `prefix_1`, … there are with something below them."""
        depth = prefix.count("/") + 1
        names = [*self._model.variables, *self._model.aliases]
        scopes = {"/".join(name.split("/")[:depth]) for name in names if name.count("/") >= depth}
        number = 0
        while f"{prefix}_{number}" in scopes:
            number += 1
        return number

    def floats(self, name: str, *shape: int | None) -> Floats:
        """A tensor, quantized or not; None stands for any size of an axis."""
        variable, own_name = self._find(name)
        found = variable.array.shape
        if len(found) != len(shape) or any(
            want not in (None, size) for want, size in zip(shape, found, strict=True)
        ):
            expected = [size or "any" for size in shape]
            raise CTranslate2Error(
                f"{self._model.path}: {name} is {list(found)}, and {expected} is expected of such a model"
            )
        floats = self._as_floats(name, own_name, variable)
        if not np.isfinite(floats).all():
            raise CTranslate2Error(f"{self._model.path}: {name} holds what is no number")
        return floats

    def number(self, name: str, default: float) -> float:
        """A single number; the default where there is none."""
        if name not in self:
            return default
        variable, _ = self._find(name)
        if variable.array.size != 1:
            raise CTranslate2Error(
                f"{self._model.path}: {name} is {list(variable.array.shape)}, and one number is expected"
            )
        number = float(_plain(variable).reshape(-1)[0])
        if not math.isfinite(number):
            raise CTranslate2Error(f"{self._model.path}: {name} is {number}")
        return number

    def is_flag(self, name: str) -> bool:
        """Whether it is a truth value, which is kept as int8."""
        return name in self and self._find(name)[0].array.dtype == np.int8

    def text(self, name: str, default: str) -> str:
        """A string, kept as its bytes."""
        if name not in self:
            return default
        return self._find(name)[0].array.tobytes().decode(errors="replace")

    def _find(self, name: str) -> tuple[Variable, str]:
        own_name = self._model.aliases.get(name, name)
        if own_name not in self._model.variables:
            raise CTranslate2Error(f"{self._model.path} has no {name}, which such a model has")
        self._unread.discard(name)
        return self._model.variables[own_name], own_name

    def _as_floats(self, name: str, own_name: str, variable: Variable) -> Floats:
        if variable.array.dtype.kind != "i":
            return _plain(variable)
        scale = self._scale(name, own_name, variable)
        return np.divide(variable.array, scale, dtype=np.float32)

    def _scale(self, name: str, own_name: str, variable: Variable) -> Floats:
        """What the codes are divided by: one for all, or one a row."""
        scale_name = f"{own_name}_scale"
        if scale_name not in self._model.variables:
            if variable.array.dtype != np.int16:
                raise CTranslate2Error(f"{self._model.path} has no {scale_name}, which {name} needs")
            return np.array(_INT16_SCALE, np.float32)
        self._unread -= {scale_name, f"{name}_scale"}
        scale = _plain(self._model.variables[scale_name])
        if scale.shape not in ((), (1,), variable.array.shape[:1]):
            raise CTranslate2Error(
                f"{self._model.path}: {scale_name} is {list(scale.shape)}, and {name} has "
                f"{variable.array.shape[0]} rows"
            )
        if not (np.isfinite(scale).all() and (scale > 0).all()):
            raise CTranslate2Error(f"{self._model.path}: {scale_name} holds what is no scale")
        return scale.reshape(-1, *[1] * (variable.array.ndim - 1)) if scale.size > 1 else scale.reshape(())


def _plain(variable: Variable) -> Floats:
    """Its numbers as they stand, as floats."""
    if variable.is_bfloat16:
        return np.left_shift(variable.array, 16, dtype=np.uint32).view(np.float32)
    return variable.array.astype(np.float32, copy=False)
