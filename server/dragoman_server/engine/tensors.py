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

MIN_TRIM_SHARE = 0.25
"""A state that grows is trimmed when more than this share of its steps is older than any of its rows."""


class Memory:
    """One memory tensor, [S, ...]: fixed for a sentence. Kept in a buffer that is larger than the batch.

    Regrouping copies who joins and who moves; all are copied only when T or the buffer's size changes.
    """

    def __init__(self, position_axis: int | None) -> None:
        """`position_axis` is the axis that is padded, if the tensor has one: that of the source positions T,
        or that of the candidates.
        """
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
        into, out_of = _span(places), _span(origin)
        if self._axis is None:
            target[into] = source[out_of]
            return
        common = min(target.shape[self._axis], source.shape[self._axis])
        before = (slice(None),) * (self._axis - 1)
        target[into, *before, :common] = source[out_of, *before, :common]
        target[into, *before, common:] = 0


def _span(places: IntArray) -> IntArray | slice:
    """Places that follow one another as a slice, which numpy copies from without a copy in between."""
    if len(places) and (np.diff(places) == 1).all():
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def join_rows(running: Array, joined: Sequence[Array], growth_axis: int | None, max_age: int) -> Array:
    """The rows of a state tensor followed by those of newcomers, each part [rows, ...].

    Along a growth axis, to which every step adds one on the right, rows are padded or trimmed on the left to
    what a row has that lived through `max_age` steps.
    """
    if growth_axis is None:
        return np.concatenate([running, *joined])
    length = joined[0].shape[growth_axis] + max_age
    return np.concatenate([align_right(array, growth_axis, length) for array in (running, *joined)])


def align_right(array: Array, axis: int, length: int) -> Array:
    """The array with so many positions along the axis: the last it has, zeros before them."""
    last = np.moveaxis(array, axis, 0)[max(0, array.shape[axis] - length) :]
    padding = np.zeros((length - len(last), *last.shape[1:]), array.dtype)
    return np.ascontiguousarray(np.moveaxis(np.concatenate([padding, last]), 0, axis))


def steps_to_keep(num_grown: int, max_age: int) -> int:
    """Steps of a past that are kept when sentences left, and none of those who stay is older."""
    return max_age if num_grown - max_age > MIN_TRIM_SHARE * num_grown else num_grown


def pad_sources(
    sources: Sequence[Sequence[int]], pad: int, *, num_sentences: int, source_positions: int
) -> tuple[IntArray, IntArray]:
    """Sources as an array [S, T] and their lengths [S]; sentences too many are one token of padding."""
    source_ST = np.full((num_sentences, source_positions), pad, np.int64)
    length_S = np.ones(num_sentences, np.int64)
    for s, source in enumerate(sources):
        source_ST[s, : len(source)] = source
        length_S[s] = len(source)
    return source_ST, length_S
