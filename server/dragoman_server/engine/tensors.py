"""A running batch's tensors on the host: sentences leave and join, and little is copied.

Knows numpy only. Zeros are what padding looks like: the graphs mask a source position whose mask is 0, and
likewise a state's step that a row has not lived through.

Shape suffixes: S sentences, T source positions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman_server.engine.decoder import IntArray

Array = npt.NDArray[Any]


class Memory:
    """One memory tensor, [S, ...]: fixed for a sentence. Kept in a buffer that is larger than the batch.

    Regrouping copies who joins and who moves; all are copied only when T or the buffer's size changes.
    """

    def __init__(self, position_axis: int | None) -> None:
        """`position_axis` is the axis of length T, if the tensor has one."""
        self._axis = position_axis
        self._buffer: Array | None = None
        self._num_sentences = 0

    @property
    def array(self) -> Array:
        """The tensor, contiguous, a view."""
        assert self._buffer is not None
        return self._buffer[: self._num_sentences]

    def regroup(self, origin_S: IntArray, joined: Sequence[Array], source_positions: int) -> None:
        """As `Batch.regroup`; `joined` are the new sentences' tensors, each with a T of its own."""
        num_before = self._num_sentences
        if self._buffer is None:
            # An empty batch of the newcomers' kind, for them to join.
            self._buffer = np.zeros((0, *joined[0].shape[1:]), joined[0].dtype)
        source, target = self._buffer, self._room_for(self._buffer, len(origin_S), source_positions)
        places = np.arange(len(origin_S))
        stays = origin_S < num_before
        moved = places[stays if target is not source else stays & (origin_S != places)]
        self._put(target, moved, source, origin_S[moved])
        first = num_before
        for array in joined:
            arrived = places[(origin_S >= first) & (origin_S < first + len(array))]
            self._put(target, arrived, array, origin_S[arrived] - first)
            first += len(array)
        self._buffer, self._num_sentences = target, len(origin_S)

    def _room_for(self, buffer: Array, num_sentences: int, source_positions: int) -> Array:
        """The buffer if it has the shape that is needed, otherwise a new one of zeros."""
        shape = list(buffer.shape)
        if num_sentences > shape[0]:
            shape[0] = max(num_sentences, 2 * shape[0])
        if self._axis is not None:
            shape[self._axis] = source_positions
        return buffer if tuple(shape) == buffer.shape else np.zeros(shape, buffer.dtype)

    def _put(self, target: Array, places: IntArray, source: Array, origin: IntArray) -> None:
        if self._axis is None:
            target[places] = source[origin]
            return
        target_T, source_T = np.moveaxis(target, self._axis, 1), np.moveaxis(source, self._axis, 1)
        common = min(target_T.shape[1], source_T.shape[1])
        target_T[places, :common] = source_T[origin, :common]
        target_T[places, common:] = 0


def join_rows(running: Array, joined: Sequence[Array], growth_axis: int | None, max_age: int) -> Array:
    """The rows of a state tensor followed by those of newcomers, each part [rows, ...].

    Along a growth axis, to which every step adds one on the right, rows are padded or trimmed on the left to
    what a row has that lived through `max_age` steps.
    """
    if growth_axis is None:
        return np.concatenate([running, *joined])
    length = joined[0].shape[growth_axis] + max_age

    def aligned(array: Array) -> Array:
        array = np.moveaxis(array, growth_axis, 0)[max(0, array.shape[growth_axis] - length) :]
        padding = np.zeros((length - len(array), *array.shape[1:]), array.dtype)
        return np.moveaxis(np.concatenate([padding, array]), 0, growth_axis)

    return np.concatenate([aligned(array) for array in (running, *joined)])
