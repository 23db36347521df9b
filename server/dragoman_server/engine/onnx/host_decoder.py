"""A bundle's graphs whose batches' sentences join and leave in buffers of the host.

On a CPU that copies least: who joins and who moves, and nobody else. A GPU would be sent all of it anew at
every step; `device_decoder` has what stays there.

Shape suffixes: S sentences, K beam, T source positions, C candidates of a sentence.
"""

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime
from dragoman_bundle.manifest import ENCODER_GRAPH, SHORTLIST_GRAPH, TensorContract

from dragoman_server.engine.decoder import IntArray, StepInput, StepOutput
from dragoman_server.engine.onnx import tensors
from dragoman_server.engine.onnx.candidates import BatchCandidates, Offer
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.session import shrinking
from dragoman_server.engine.onnx.tensors import Array
from dragoman_server.engine.search.history import Ages

WANTS_ATTENTION = "wants_attention"


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """The encoder's results for a group of sentences, on the host."""

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
        precision: str,
        candidates: BatchCandidates | None,
        run_options: onnxruntime.RunOptions | None,
    ) -> None:
        self._session = session
        self._run_options = run_options
        self._candidates = candidates
        axes = {spec.name: spec.shape.index("T") for spec in contract.memory if "T" in spec.shape}
        self._buffers = {spec.name: tensors.Memory(axes.get(spec.name)) for spec in contract.memory}
        self._growth_axis = {spec.name: spec.growth_axis for spec in contract.state}
        self._padded_behind = {spec.name: precision in spec.padded_behind for spec in contract.state}
        self._memory: dict[str, Array] = {}
        self._state: dict[str, Array] = {}
        # Graphs that compute attention apart from all else are told whether to; to others it is a by-product.
        self._is_told = any(value.name == WANTS_ATTENTION for value in session.get_overridable_initializers())
        state = [f"next_{name}" for name in self._growth_axis]
        self._results = ["top_score", "top_index", "forced_score", *state]
        self._ages = Ages()
        self._num_grown = 0

    def regroup(self, origin_S: IntArray, joined: Sequence[Encoded], source_positions: int) -> None:
        """Implements `Batch.regroup`."""
        moves = tensors.Moves(origin_S, self._ages.num_sentences, [own.num_sentences for own in joined])
        for name, buffer in self._buffers.items():
            buffer.regroup(moves, [encoded.memory[name] for encoded in joined], source_positions)
            self._memory[name] = buffer.array
        if self._candidates is not None:
            self._candidates.regroup(moves, [own.offer for own in joined if own.offer is not None])
            self._memory |= self._candidates.arrays
        self._ages.regroup(origin_S, sum(encoded.num_sentences for encoded in joined))
        oldest = self._ages.oldest()
        # Steps that only those lived through who left go where they are a good part of all.
        num_dropped = self._num_grown - (oldest if joined else tensors.steps_to_keep(self._num_grown, oldest))
        self._num_grown -= num_dropped
        for name, axis in self._growth_axis.items():
            running = self._state.get(name)
            parts = [*([] if running is None else [running]), *(own.state[name] for own in joined)]
            if running is not None and axis is not None and (joined or num_dropped):
                length, behind = running.shape[axis] - num_dropped, self._padded_behind[name]
                self._state[name] = tensors.join_rows(parts, axis, length, padded_behind=behind)
            elif joined:
                self._state[name] = np.concatenate(parts)

    def step(self, rows: StepInput) -> StepOutput:
        """Implements `Batch.step`."""
        forced_SK = rows.forced_SK
        if self._candidates is not None and forced_SK.any():
            forced_SK, has_changed = self._candidates.find(forced_SK)
            if has_changed:
                self._memory |= self._candidates.arrays
        given: dict[str, Array] = {
            "token": rows.token_SK,
            "parent": rows.parent_SK,
            "score": rows.score_SK,
            "forced": forced_SK,
            **self._memory,
            **self._state,
        }
        if self._is_told:
            given[WANTS_ATTENTION] = np.array(rows.wants_attention)
        # Less is done by a plain run than by binding all of it anew, and on a CPU nothing else is copied.
        asked = [*self._results, "attention"] if rows.wants_attention else self._results
        score_SC, index_SC, forced_score_SK, *rest = self._session.run(asked, given, self._run_options)
        self._state = dict(zip(self._growth_axis, rest, strict=False))
        self._ages.step()
        self._num_grown += 1
        return StepOutput(
            top_score_SC=score_SC,
            top_index_SC=index_SC,
            forced_score_SK=forced_score_SK,
            attention_SKT=rest[-1] if rows.wants_attention else None,
        )


class HostDecoder(OnnxDecoder):
    """Encodes sentences and opens batches, on the host."""

    _run_options: onnxruntime.RunOptions | None = None

    def encode(self, sources: Sequence[Sequence[int]], beam_size: int) -> Encoded:
        """Implements `Decoder.encode`."""
        source_ST, length_S = tensors.pad_sources(
            sources, self._pad, num_sentences=len(sources), source_positions=max(map(len, sources))
        )
        given = {"source": source_ST, "source_length": length_S}
        arrays = self.sessions[ENCODER_GRAPH].run([*self._memory, *self._state], given, self._run_options)
        chooser = self.chooser(beam_size)
        memory = dict(zip(self._memory, arrays, strict=False))
        state = dict(zip(self._state, arrays[len(self._memory) :], strict=True))
        offer = None if chooser is None else chooser.choose(sources)
        return Encoded(memory=memory, state=state, num_sentences=len(sources), offer=offer)

    def open_batch(self, beam_size: int) -> OnnxBatch:
        """Implements `Decoder.open_batch`."""
        chooser = self.chooser(beam_size)
        candidates = None if chooser is None else BatchCandidates(chooser, self.candidate_axes)
        session = self.step_session(beam_size)
        return OnnxBatch(session, self.contract, self.precision, candidates, self._run_options)

    def release_memory(self) -> None:
        """Implements `Decoder.release_memory` on a CPU. A GPU's memory is its server's alone."""
        if self.device != "cpu":
            return
        self._run_options = shrinking()
        try:
            self.try_out()
        finally:
            self._run_options = None
        trim_memory()

    def _gather(self, candidates_SC: IntArray) -> dict[str, Array]:
        names, given = list(self.candidate_axes), {"candidates": candidates_SC}
        arrays = self.sessions[SHORTLIST_GRAPH].run(names, given, self._run_options)
        return dict(zip(names, arrays, strict=True))


def trim_memory() -> None:
    """Gives back what is free of all threads' heaps, which glibc keeps; elsewhere this does nothing."""
    if trim := _malloc_trim():
        trim(0)


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
