"""A bundle's graphs with everything between them on the device, as a GPU needs it.

Only the 2K candidates of a step, and attention where it is wanted, come to the host. What a shortlist takes
of the output layer is gathered anew at each regrouping: on a device that moves less than copying it from
batch to batch would, and the host has to know no more than the candidates' ids.

Shapes vary little, so that onnxruntime's arena of device memory does not grow with every new one: sentences
and rows are padded to the sizes of `padded_rows`, source positions and candidates to multiples. Only a
past that grows, such as a Transformer's, has a new length at each step.

Shape suffixes: S sentences, K beam, T source positions, C candidates of a sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from dragoman_bundle.bundle import BundleGraphs
from dragoman_bundle.manifest import ENCODER_GRAPH, REGROUP_GRAPH, SHORTLIST_GRAPH
from onnxruntime import OrtValue

from dragoman_server.engine.decoder import IntArray, StepInput, StepOutput, padded_positions
from dragoman_server.engine.onnx.candidates import CANDIDATE, BatchCandidates, Offer
from dragoman_server.engine.onnx.decoder import OnnxDecoder
from dragoman_server.engine.onnx.regrouper import Part, Regrouper
from dragoman_server.engine.onnx.session import DecoderOptions, Sessions, run_bound
from dragoman_server.engine.onnx.tensors import Array, Moves, pad_sources, steps_to_keep
from dragoman_server.engine.search.history import Ages


@dataclass(frozen=True, kw_only=True)
class DeviceEncoded:
    """The encoder's results for a group of sentences, on the device."""

    part: Part
    offer: Offer | None
    """Their candidates, ids only, where the decoder has a shortlist."""


class DeviceDecoder(OnnxDecoder):
    """Encodes sentences and opens batches, on the device."""

    def __init__(
        self, bundle: BundleGraphs, options: DecoderOptions, sessions: Sessions, *, pads: bool | None = None
    ) -> None:
        """Makes a decoder; with `pads`, tensors have few shapes, and rows that nobody needs. None: on a GPU
        alone, as a CPU computes every row that is padding and has no trouble with shapes."""
        super().__init__(bundle, options, sessions)
        self._pads = options.device != "cpu" if pads is None else pads
        self.regrouper = Regrouper(sessions[REGROUP_GRAPH], self.contract, options, pads=self._pads)
        self.nobody = replace(self.encode([[self._pad]], 1).part, num_sentences=0, num_rows=0)
        """Joins where nobody does: the graph takes no empty tensors."""

    def encode(self, sources: Sequence[Sequence[int]], beam_size: int) -> DeviceEncoded:
        """Implements `Decoder.encode`."""
        num_sentences, longest = len(sources), max(map(len, sources))
        positions = padded_positions(longest) if self._pads else longest
        sizes = {"num_sentences": self.regrouper.pad(num_sentences), "source_positions": positions}
        source_ST, length_S = pad_sources(sources, self._pad, **sizes)
        wanted = dict.fromkeys([*self._memory, *self._state], self.device)
        given = {"source": source_ST, "source_length": length_S}
        tensors = run_bound(self.sessions[ENCODER_GRAPH], given, wanted)
        memory, state = ({name: tensors[name] for name in own} for own in (self._memory, self._state))
        part = Part(memory=memory, state=state, num_sentences=num_sentences, num_rows=num_sentences)
        chooser = self.chooser(beam_size)
        return DeviceEncoded(part=part, offer=None if chooser is None else chooser.choose(sources))

    def open_batch(self, beam_size: int) -> "DeviceBatch":
        """Implements `Decoder.open_batch`."""
        return DeviceBatch(self, beam_size)

    def release_memory(self) -> None:
        """Does nothing for `Decoder.release_memory`: a GPU's memory is its server's alone."""

    def _gather(self, candidates_SC: IntArray) -> dict[str, Array]:
        return {CANDIDATE: candidates_SC}


class DeviceBatch:
    """A running batch that stays on the device. Implements `Batch`."""

    def __init__(self, decoder: DeviceDecoder, beam_size: int) -> None:
        self._decoder = decoder
        self._session = decoder.step_session(beam_size)
        self._beam_size = beam_size
        self._part: Part | None = None
        self._candidates: BatchCandidates | None = None
        if (chooser := decoder.chooser(beam_size)) is not None:
            self._candidates = BatchCandidates(chooser, {CANDIDATE: 1})
        self._candidate_memory: dict[str, OrtValue] = {}
        self._ages = Ages()
        self._num_grown = 0

    def regroup(self, origin_S: IntArray, joined: Sequence[DeviceEncoded], source_positions: int) -> None:
        """Implements `Batch.regroup` for a batch that is not empty afterwards."""
        if self._candidates is not None:
            offers = [encoded.offer for encoded in joined if encoded.offer is not None]
            sizes = [encoded.part.num_sentences for encoded in joined]
            self._candidates.regroup(Moves(origin_S, self._ages.num_sentences, sizes), offers)
        self._ages.regroup(origin_S, sum(encoded.part.num_sentences for encoded in joined))
        oldest = self._ages.oldest()
        self._num_grown = oldest if joined else steps_to_keep(self._num_grown, oldest)
        running, newcomers = self._part, self._join([encoded.part for encoded in joined], source_positions)
        if running is None:
            running, newcomers = newcomers, self._decoder.nobody
        self._part = self._decoder.regrouper.regroup(
            running, newcomers, origin_S, source_positions=source_positions, num_grown=self._num_grown
        )
        if self._candidates is not None:
            self._gather(self._candidates)

    def step(self, rows: StepInput) -> StepOutput:
        """Implements `Batch.step`."""
        part = self._part
        assert part is not None
        S, K = rows.token_SK.shape
        num_padded = self._decoder.regrouper.pad(S) - S
        forced_SK = rows.forced_SK
        if self._candidates is not None and forced_SK.any():
            forced_SK, has_changed = self._candidates.find(forced_SK)
            if has_changed:
                self._gather(self._candidates)
        assert self._beam_size == K
        results = ["top_score", "top_index", "forced_score", *(["attention"] if rows.wants_attention else [])]
        given: dict[str, OrtValue | Array] = {
            "token": _pad_rows(rows.token_SK, num_padded, 0),
            "parent": _pad_rows(rows.parent_SK, num_padded, 0),
            "score": _pad_rows(rows.score_SK, num_padded, -np.inf),
            "forced": _pad_rows(forced_SK, num_padded, 0),
            **part.memory,
            **self._candidate_memory,
            **part.state,
        }
        wanted = dict.fromkeys(results, "cpu")
        wanted |= dict.fromkeys([f"next_{name}" for name in part.state], self._decoder.device)
        outputs = run_bound(self._session, given, wanted)
        arrays = {name: outputs[name].numpy()[:S] for name in results}
        state = {name: outputs[f"next_{name}"] for name in part.state}
        self._part = replace(part, state=state, num_rows=S * K)
        self._ages.step()
        self._num_grown += 1
        return StepOutput(
            top_score_SC=arrays["top_score"],
            top_index_SC=arrays["top_index"],
            forced_score_SK=arrays["forced_score"],
            attention_SKT=arrays.get("attention"),
        )

    def _join(self, parts: Sequence[Part], source_positions: int) -> Part:
        """One part of the newcomers."""
        together = parts[0] if parts else self._decoder.nobody
        for part in parts[1:]:
            everybody = np.arange(together.num_sentences + part.num_sentences)
            given = together, part, everybody
            together = self._decoder.regrouper.regroup(*given, source_positions=source_positions, num_grown=0)
        return together

    def _gather(self, candidates: BatchCandidates) -> None:
        ids_SC = candidates.ids
        num_padded = self._decoder.regrouper.pad(len(ids_SC)) - len(ids_SC)
        # As a sentence that is there: one of padding alone would have no candidate at all.
        given = {"candidates": np.concatenate([ids_SC, np.repeat(ids_SC[:1], num_padded, axis=0)])}
        outputs = dict.fromkeys(self._decoder.candidate_axes, self._decoder.device)
        self._candidate_memory = run_bound(self._decoder.sessions[SHORTLIST_GRAPH], given, outputs)


def _pad_rows(array_SK: Array, num_padded: int, value: float) -> Array:
    return np.pad(array_SK, ((0, num_padded), (0, 0)), constant_values=value)
