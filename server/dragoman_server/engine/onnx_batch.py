"""A running batch of ONNX graphs whose sentences join and leave in buffers of the host.

On a CPU that copies least: who joins and who moves, and nobody else. On a GPU all of it is uploaded anew each
time; `device_model` has what stays there.

Shape suffixes: S sentences, K beam, T source positions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnxruntime
from onnxruntime import OrtValue

from dragoman_bundle.manifest import TensorContract
from dragoman_server.engine.ages import Ages
from dragoman_server.engine.bound_run import run_step
from dragoman_server.engine.candidates import BatchCandidates, Offer
from dragoman_server.engine.decoder import IntArray, StepInput, StepOutput
from dragoman_server.engine.tensors import Array, Memory, Moves, align_right, join_rows, steps_to_keep


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """What the encoder made of a group of sentences, on the host."""

    memory: Mapping[str, Array]
    state: Mapping[str, Array]
    num_sentences: int
    offer: Offer | None
    """Their candidates, where the decoder has a shortlist."""


class OnnxBatch:
    """A running batch of ONNX graphs. Implements `Batch`."""

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        contract: TensorContract,
        device: str,
        candidates: BatchCandidates | None = None,
    ) -> None:
        self._session = session
        self._candidates = candidates
        self._device = device
        self._buffers = {spec.name: Memory(_axis(spec.shape, "T")) for spec in contract.memory}
        self._growth_axis = {spec.name: spec.growth_axis for spec in contract.state}
        self._memory: dict[str, OrtValue] = {}
        self._state: dict[str, OrtValue] = {}
        self._ages = Ages()
        self._num_grown = 0

    def regroup(self, origin_S: IntArray, joined: Sequence[Encoded], source_positions: int) -> None:
        """As `Batch.regroup`."""
        moves = Moves(origin_S, self._ages.num_sentences, [encoded.num_sentences for encoded in joined])
        for name, buffer in self._buffers.items():
            buffer.regroup(moves, [encoded.memory[name] for encoded in joined], source_positions)
            self._memory[name] = OrtValue.ortvalue_from_numpy(buffer.array, self._device)
        if self._candidates is not None:
            offers = [encoded.offer for encoded in joined if encoded.offer is not None]
            self._candidates.regroup(origin_S, offers)
            self._hand_over_candidates(self._candidates)
        self._ages.regroup(origin_S, sum(encoded.num_sentences for encoded in joined))
        if joined:
            self._join_states(joined)
        else:
            self._trim_states()

    def step(self, rows: StepInput) -> StepOutput:
        """As `Batch.step`. States stay on the device; only the candidates come to the host."""
        if self._candidates is not None and rows.forced_SK.any():
            forced_SK, has_changed = self._candidates.find(rows.forced_SK)
            rows = replace(rows, forced_SK=forced_SK)
            if has_changed:
                self._hand_over_candidates(self._candidates)
        output, self._state = run_step(self._session, rows, self._memory, self._state, self._device)
        self._ages.step()
        self._num_grown += 1
        return output

    def _join_states(self, joined: Sequence[Encoded]) -> None:
        self._num_grown = self._ages.oldest()
        for name, growth_axis in self._growth_axis.items():
            arrays = [encoded.state[name] for encoded in joined]
            if name in self._state:
                rows = join_rows(self._state[name].numpy(), arrays, growth_axis, self._num_grown)
            else:
                rows = np.concatenate(arrays)
            self._state[name] = OrtValue.ortvalue_from_numpy(rows, self._device)

    def _trim_states(self) -> None:
        """Drops the steps that only those lived through who left, where they are a good part of all."""
        excess = self._num_grown - steps_to_keep(self._num_grown, self._ages.oldest())
        if not excess:
            return
        self._num_grown -= excess
        for name, growth_axis in self._growth_axis.items():
            if growth_axis is not None:
                array = self._state[name].numpy()
                rows = align_right(array, growth_axis, array.shape[growth_axis] - excess)
                self._state[name] = OrtValue.ortvalue_from_numpy(rows, self._device)

    def _hand_over_candidates(self, candidates: BatchCandidates) -> None:
        for name, array in candidates.arrays.items():
            self._memory[name] = OrtValue.ortvalue_from_numpy(array, self._device)


def _axis(shape: Sequence[int | str], symbol: str) -> int | None:
    return shape.index(symbol) if symbol in shape else None
