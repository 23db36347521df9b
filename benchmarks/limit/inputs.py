"""Inputs of a graph at sizes that are asked for, with values that make no difference to its speed.

Sizes by name: S sentences, K beam, P rows of the step before, T source positions, U steps that a state has
grown by, C candidates of a sentence.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]

_DTYPES: Mapping[str, type[np.generic]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}


class Input(Protocol):
    """What onnxruntime says of an input."""

    name: str
    type: str
    shape: Sequence[int | str]


def step_sizes(*, sentences: int, beam: int, source_positions: int, candidates: int) -> dict[str, int]:
    """The sizes of a step in the midst of a translation."""
    return {
        "S": sentences,
        "K": beam,
        "P": sentences * beam,
        "T": source_positions,
        "U": source_positions // 2,
        "C": candidates,
    }


def make_inputs(inputs: Sequence[Input], sizes: Mapping[str, int], vocabulary: int) -> dict[str, Array]:
    """An array for each input. Raises KeyError for a size of another name."""
    generator = np.random.default_rng(0)
    arrays: dict[str, Array] = {}
    for each in inputs:
        shape = tuple(size if isinstance(size, int) else sizes[size] for size in each.shape)
        dtype = np.dtype(_DTYPES[each.type])
        array: Array
        if each.name == "parent":
            array = np.arange(np.prod(shape)).reshape(shape)
        elif "mask" in each.name:
            array = np.ones(shape)
        elif each.name in ("score", "forced") or "age" in each.name:
            array = np.zeros(shape)
        elif dtype == np.int64:
            array = np.sort(generator.integers(0, vocabulary, shape))
        elif dtype in (np.int8, np.uint8):
            array = generator.integers(0, 128, shape)
        else:
            array = 0.1 * generator.standard_normal(shape)
        arrays[each.name] = array.astype(dtype)
    return arrays
