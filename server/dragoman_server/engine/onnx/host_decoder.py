"""A bundle's graphs whose batches regroup in buffers of the host, which on a CPU copies least.

Shape suffixes: S sentences, T source positions, C candidates of a sentence.
"""

import ctypes
import functools
from collections.abc import Callable, Mapping, Sequence

import onnxruntime
from dragoman_bundle.bundle import BundleGraphs
from dragoman_bundle.manifest import ENCODER_GRAPH, SHORTLIST_GRAPH

from dragoman_server.engine.decoder import IntArray
from dragoman_server.engine.onnx.batch import Encoded, OnnxBatch
from dragoman_server.engine.onnx.candidates import BatchCandidates
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.session import DecoderOptions, shrinking
from dragoman_server.engine.onnx.tensors import Array, pad_sources


class HostDecoder(OnnxDecoder):
    """Encodes sentences and opens batches, on the host."""

    def __init__(
        self,
        bundle: BundleGraphs,
        options: DecoderOptions,
        sessions: Mapping[str, onnxruntime.InferenceSession],
    ) -> None:
        super().__init__(bundle, options, sessions)
        self._run_options: onnxruntime.RunOptions | None = None

    def encode(self, sources: Sequence[Sequence[int]], beam_size: int) -> Encoded:
        """Implements `Decoder.encode`."""
        source_ST, length_S = pad_sources(
            sources, self._pad, num_sentences=len(sources), source_positions=max(map(len, sources))
        )
        given = {"source": source_ST, "source_length": length_S}
        arrays = self.sessions[ENCODER_GRAPH].run([*self._memory, *self._state], given, self._run_options)
        chooser = self.chooser(beam_size)
        return Encoded(
            memory=dict(zip(self._memory, arrays, strict=False)),
            state=dict(zip(self._state, arrays[len(self._memory) :], strict=True)),
            num_sentences=len(sources),
            offer=None if chooser is None else chooser.choose(sources),
        )

    def open_batch(self, beam_size: int) -> OnnxBatch:
        """Implements `Decoder.open_batch`."""
        chooser = self.chooser(beam_size)
        candidates = None if chooser is None else BatchCandidates(chooser, self._candidate_axes)
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
        names, given = list(self._candidate_axes), {"candidates": candidates_SC}
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
