"""A running batch's tensors on the host: sentences leave and join, and little is copied.

Knows numpy only. Zeros are what padding looks like: the graphs mask a source position whose mask is 0, and
likewise a state's step that a row has not lived through.

Shape suffixes: S sentences, T source positions.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dragoman_server.engine.decoder import IntArray, worth_trimming

Array = npt.NDArray[Any]

Places = IntArray | slice
"""Places that follow one another are a slice, which numpy copies without an array in between."""
Spans = tuple[Places, Places]
"""Where something is copied to, and where from."""


class Moves:
    """The places that a regrouping copies from and to: the same for all of a batch's tensors."""

    def __init__(self, origin_S: IntArray, num_before: int, num_joined: Sequence[int]) -> None:
        """`origin_S` as in `Batch.regroup`, of a batch of `num_before`, joined by groups of these sizes."""
        self.origin_S = origin_S
        self.num_before, self.num_after = num_before, len(origin_S)
        self._num_joined = num_joined

    @cached_property
    def stayed(self) -> Spans:
        """The sentences that were in the batch: their new places and the old ones."""
        return self._spans(self.origin_S < self.num_before)

    @cached_property
    def moved(self) -> Spans:
        """Those of them who don't stand where they stood."""
        moved_S = self.origin_S != np.arange(self.num_after)
        return self._spans(moved_S & (self.origin_S < self.num_before))

    @cached_property
    def arrived(self) -> list[Spans]:
        """The groups that joined: of each the new places, and those in the group."""
        spans, first = [], self.num_before
        for size in self._num_joined:
            inside_S = (self.origin_S >= first) & (self.origin_S < first + size)
            spans.append(self._spans(inside_S, first))
            first += size
        return spans

    def _spans(self, chosen_S: npt.NDArray[np.bool_], first: int = 0) -> Spans:
        place_S = np.flatnonzero(chosen_S)
        return _span(place_S), _span(self.origin_S[place_S] - first)


def _span(places: IntArray) -> Places:
    size = len(places)
    if not size:
        return slice(0, 0)
    first, last = int(places[0]), int(places[-1])
    follow = last - first == size - 1 and (size <= 2 or bool((places[1:] - places[:-1] == 1).all()))
    return slice(first, last + 1) if follow else places


class Memory:
    """One memory tensor, [S, ...]: fixed for a sentence. Kept in a buffer that is larger than the batch.

    Regrouping copies who joins and who moves; all are copied only when T or the buffer's size changes.
    """

    def __init__(self, padded_axis: int | None) -> None:
        """`padded_axis` is that of the source positions T, or of the candidates, if the tensor has one."""
        self._axis = padded_axis
        self._buffer: Array | None = None
        self._num_sentences = 0

    @property
    def array(self) -> Array:
        """The tensor, contiguous, a view."""
        assert self._buffer is not None
        return self._buffer[: self._num_sentences]

    def regroup(self, moves: Moves, joined: Sequence[Array], length: int) -> None:
        """Implements `Batch.regroup`; `joined` are the new sentences' tensors, each of its own length."""
        assert moves.num_before == self._num_sentences
        if self._buffer is None:
            # An empty batch of the newcomers' kind, for them to join.
            self._buffer = np.zeros((0, *joined[0].shape[1:]), joined[0].dtype)
        source, target = self._buffer, self._room_for(self._buffer, moves.num_after, length)
        self._put(target, source, moves.moved if target is source else moves.stayed)
        for array, arrived in zip(joined, moves.arrived, strict=True):
            self._put(target, array, arrived)
        self._buffer, self._num_sentences = target, moves.num_after

    def _room_for(self, buffer: Array, num_sentences: int, length: int) -> Array:
        """The buffer if it has the shape that is needed, otherwise a new one, for `_put` to fill."""
        shape = list(buffer.shape)
        if num_sentences > shape[0]:
            shape[0] = max(num_sentences, 2 * shape[0])
        if self._axis is not None:
            shape[self._axis] = length
        return buffer if tuple(shape) == buffer.shape else np.empty(shape, buffer.dtype)

    def _put(self, target: Array, source: Array, spans: Spans) -> None:
        into, out_of = spans
        if isinstance(into, slice) and into.start == into.stop:
            return
        if self._axis is None or target.shape[self._axis] == source.shape[self._axis]:
            target[into] = source[out_of]
            return
        common = min(target.shape[self._axis], source.shape[self._axis])
        before = (slice(None),) * (self._axis - 1)
        target[into, *before, :common] = source[out_of, *before, :common]
        target[into, *before, common:] = 0


def join_rows(parts: Sequence[Array], axis: int, length: int, *, padded_behind: bool) -> Array:
    """The rows of a state tensor's parts, [rows, ...], each with `length` positions along the axis.

    They are the last it has, with zeros before them, or with `padded_behind` the first, with zeros behind.
    """
    shape = [sum(map(len, parts)), *parts[0].shape[1:]]
    shape[axis] = length
    target, first = np.empty(shape, parts[0].dtype), 0
    for part in parts:
        _fill(target[first : first + len(part)], part, axis, padded_behind=padded_behind)
        first += len(part)
    return target


def _fill(target: Array, array: Array, axis: int, *, padded_behind: bool) -> None:
    """Copies as many positions along the axis as there are in both; the others are zeros."""
    target, array = np.moveaxis(target, axis, 0), np.moveaxis(array, axis, 0)
    kept = min(len(target), len(array))
    padding = len(target) - kept
    if padded_behind:
        target[:kept], target[kept:] = array[:kept], 0
    else:
        target[padding:], target[:padding] = array[len(array) - kept :], 0


def steps_to_keep(num_grown: int, max_age: int) -> int:
    """Steps of a past that are kept when sentences left, none of whose successors is older."""
    return max_age if worth_trimming(max_age, num_grown) else num_grown


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
