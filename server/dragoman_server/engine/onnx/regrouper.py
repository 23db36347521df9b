"""Joins two parts of a batch on the device, by the bundle's graph "regroup".

Owns the arithmetic of what comes from where, and the padding of shapes; tensors never come to the host.

Shape suffixes: S sentences of the new part, R rows of its state, T source positions, U steps grown by.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnxruntime
from dragoman_bundle.manifest import TensorContract
from onnxruntime import OrtValue

from dragoman_server.engine.decoder import IntArray, padded_rows
from dragoman_server.engine.onnx.session import DecoderOptions, run_bound
from dragoman_server.engine.onnx.tensors import Array


@dataclass(frozen=True, kw_only=True)
class Part:
    """Sentences and their tensors on the device, which may hold padding behind them."""

    memory: dict[str, OrtValue]
    """[S or more, ...]"""
    state: dict[str, OrtValue]
    """[R or more, ...]"""
    num_sentences: int
    num_rows: int


class Regrouper:
    """Makes new parts of old ones."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        contract: TensorContract,
        options: DecoderOptions,
        *,
        pads: bool,
    ) -> None:
        """Makes a regrouper; with `pads`, new parts have as many sentences and rows as `padded_rows`
        gives."""
        self._session = session
        self._inputs = {value.name for value in session.get_inputs()}
        self._names = [spec.name for spec in (*contract.memory, *contract.state)]
        self._device, self._pads, precision = options.device, pads, options.precision
        self._position_axis = {own.name: own.shape.index("T") for own in contract.memory if "T" in own.shape}
        pasts = [(spec, axis) for spec in contract.state if (axis := spec.growth_axis) is not None]
        self._growth_axis = {spec.name: axis for spec, axis in pasts}
        # Of all pasts alike, as one index of steps takes them all.
        self._padded_behind = any(precision in spec.padded_behind for spec in contract.state)
        self._past_kind = {spec.name: (np.dtype(spec.dtype[precision]), spec.shape) for spec, _ in pasts}
        # Stands in where a past is empty: not every kernel takes a tensor without elements.
        self._stand_in = {
            name: OrtValue.ortvalue_from_numpy(np.zeros(self._past_shape(name, 1, 1), dtype), self._device)
            for name, (dtype, _) in self._past_kind.items()
        }

    def pad(self, count: int) -> int:
        """Sentences or rows of a tensor that must hold so many."""
        return padded_rows(count) if self._pads else count

    def regroup(
        self, running: Part, joined: Part, origin_S: IntArray, *, source_positions: int, num_grown: int
    ) -> Part:
        """A part with, at place s, the sentence `origin_S[s]`, counted in `running` and on in `joined`.

        Memory is padded or trimmed to `source_positions`. The state has all rows of `running` and those of
        `joined` behind them; of a past the last `num_grown` steps are kept, and `joined` must have none.
        """
        # From here on places and rows count the padding of `running` too.
        num_places, num_rows = _length(running.memory), _length(running.state)
        joined_place = num_places + np.arange(joined.num_sentences)
        place = np.concatenate([np.arange(running.num_sentences), joined_place])
        row = np.concatenate([np.arange(running.num_rows), num_rows + np.arange(joined.num_rows)])
        place_S = _fill_up(place[origin_S], self.pad(len(origin_S)))
        row_R = _fill_up(row, self.pad(len(row)))
        inputs: dict[str, OrtValue | Array] = {
            **{f"running.{name}": value for name, value in (running.memory | running.state).items()},
            **{f"joined.{name}": value for name, value in (joined.memory | joined.state).items()},
            "origin": place_S,
            "row": row_R,
            **self._positions(running, joined, place_S >= num_places, source_positions),
            **self._past(running, row_R, num_rows, num_grown),
        }
        given = {name: value for name, value in inputs.items() if name in self._inputs}
        tensors = run_bound(self._session, given, dict.fromkeys(self._names, self._device))
        if num_grown == 0:
            for name, (dtype, _) in self._past_kind.items():
                shape = self._past_shape(name, len(row_R), 0)
                tensors[name] = OrtValue.ortvalue_from_shape_and_type(shape, dtype, self._device)
        memory, state = ({name: tensors[name] for name in own} for own in (running.memory, running.state))
        return Part(memory=memory, state=state, num_sentences=len(origin_S), num_rows=len(row))

    def _positions(
        self, running: Part, joined: Part, is_joined_S: Array, source_positions: int
    ) -> dict[str, Array]:
        """Which source position of its part each comes from, and whether the part has it."""
        if not self._position_axis:
            return {}
        name, axis = next(iter(self._position_axis.items()))
        num_running, num_joined = (part.memory[name].shape()[axis] for part in (running, joined))
        position_T = np.arange(source_positions)
        return {
            "running_position": np.minimum(position_T, num_running - 1),
            "joined_position": np.minimum(position_T, num_joined - 1),
            "is_filled": position_T < np.where(is_joined_S, num_joined, num_running)[:, None],
        }

    def _past(
        self, running: Part, row_R: IntArray, num_rows: int, num_grown: int
    ) -> dict[str, OrtValue | Array]:
        """Which step of the running part's past each comes from, and whether the row has one."""
        if not self._growth_axis:
            return {}
        name, axis = next(iter(self._growth_axis.items()))
        num_steps = running.state[name].shape()[axis]
        assert num_grown <= num_steps, "a row has lived through more steps than the batch"
        is_old_R = row_R < num_rows
        if num_grown == 0:
            # The graph must be given something; what it makes of it is not used.
            return {
                "running_row": np.zeros_like(row_R),
                "step": np.zeros(1, np.int64),
                "is_lived": np.zeros((len(row_R), 1), np.bool_),
                **{f"running.{name}": value for name, value in self._stand_in.items()},
            }
        first = 0 if self._padded_behind else num_steps - num_grown
        return {
            "running_row": np.where(is_old_R, row_R, 0),
            "step": np.arange(first, first + num_grown),
            "is_lived": np.repeat(is_old_R[:, None], num_grown, axis=1),
        }

    def _past_shape(self, name: str, num_rows: int, num_steps: int) -> list[int]:
        _, sizes = self._past_kind[name]
        shape = [size if isinstance(size, int) else num_rows for size in sizes]
        shape[self._growth_axis[name]] = num_steps
        return shape


def _length(tensors: Mapping[str, OrtValue]) -> int:
    """Sentences or rows of the tensors, padding included."""
    return int(next(iter(tensors.values())).shape()[0])


def _fill_up(places: IntArray, length: int) -> IntArray:
    """The places, and the first of them again up to the length."""
    return np.concatenate([places, np.full(length - len(places), places[0])])
