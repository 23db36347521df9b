"""A bundle's graphs with everything between them on the device: what `OnnxDecoder` uses on a GPU.

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
import onnxruntime
from dragoman_bundle.bundle import Bundle
from onnxruntime import OrtValue

from dragoman_server.engine.decoder import IntArray, StepInput, StepOutput
from dragoman_server.engine.onnx.ages import Ages
from dragoman_server.engine.onnx.bound_run import run_bound, run_step
from dragoman_server.engine.onnx.candidates import CANDIDATE, BatchCandidates, CandidateChooser, Offer
from dragoman_server.engine.onnx.regrouper import Part, Regrouper
from dragoman_server.engine.onnx.tensors import Array, Moves, pad_sources, steps_to_keep
from dragoman_server.engine.scheduling.padding import padded_positions


@dataclass(frozen=True, kw_only=True)
class Graphs:
    """Open sessions of a bundle's graphs."""

    encoder: onnxruntime.InferenceSession
    decoder_step: onnxruntime.InferenceSession
    regroup: onnxruntime.InferenceSession
    shortlist: onnxruntime.InferenceSession | None


@dataclass(frozen=True, kw_only=True)
class DeviceEncoded:
    """What the encoder made of a group of sentences, on the device."""

    part: Part
    offer: Offer | None
    """Their candidates, ids only, where the decoder has a shortlist."""


class DeviceModel:
    """Encodes sentences and opens batches, on the device."""

    def __init__(
        self,
        bundle: Bundle,
        graphs: Graphs,
        *,
        precision: str,
        device: str,
        pads: bool,
    ) -> None:
        """With `pads`, tensors have few shapes, and rows that nobody needs."""
        manifest = bundle.manifest
        self.graphs = graphs
        self.device = device
        self._pads = pads
        self._contract = manifest.contract
        self._pad_id = manifest.source_ids.pad
        self.regrouper = Regrouper(
            graphs.regroup, manifest.contract, precision=precision, device=device, pads=pads
        )
        self.candidate_memory: list[str] = []
        self.chooser: CandidateChooser | None = None
        if graphs.shortlist is not None:
            assert bundle.shortlist is not None
            assert manifest.shortlist is not None
            self.candidate_memory = [s.name for s in manifest.shortlist.memory if precision in s.dtype]
            self.chooser = CandidateChooser(bundle.shortlist, lambda ids_SC: {CANDIDATE: ids_SC})
        self.nobody = replace(self.encode([[self._pad_id]]).part, num_sentences=0, num_rows=0)
        """Joins where nobody does: the graph takes no empty tensors."""

    def encode(self, sources: Sequence[Sequence[int]]) -> DeviceEncoded:
        """As `Decoder.encode`."""
        num_sentences, longest = len(sources), max(map(len, sources))
        source_ST, length_S = pad_sources(
            sources,
            self._pad_id,
            num_sentences=self.regrouper.pad(num_sentences),
            source_positions=padded_positions(longest) if self._pads else longest,
        )
        memory = [spec.name for spec in self._contract.memory]
        state = [spec.name for spec in self._contract.state]
        tensors = run_bound(
            self.graphs.encoder,
            {"source": source_ST, "source_length": length_S},
            dict.fromkeys([*memory, *state], self.device),
        )
        part = Part(
            memory={name: tensors[name] for name in memory},
            state={name: tensors[name] for name in state},
            num_sentences=num_sentences,
            num_rows=num_sentences,
        )
        return DeviceEncoded(part=part, offer=None if self.chooser is None else self.chooser.choose(sources))

    def open_batch(self, beam_size: int) -> "DeviceBatch":
        """As `Decoder.open_batch`."""
        return DeviceBatch(self, beam_size)

    def gather_candidates(self, candidates_SC: IntArray) -> dict[str, OrtValue]:
        """The memory of the sentences' candidates."""
        assert self.graphs.shortlist is not None
        outputs = dict.fromkeys(self.candidate_memory, self.device)
        return run_bound(self.graphs.shortlist, {"candidates": candidates_SC}, outputs)


class DeviceBatch:
    """A running batch that stays on the device. Implements `Batch`."""

    def __init__(self, model: DeviceModel, beam_size: int) -> None:
        self._model = model
        self._beam_size = beam_size
        self._part: Part | None = None
        self._candidates: BatchCandidates | None = None
        if model.chooser is not None:
            self._candidates = BatchCandidates(model.chooser, {CANDIDATE: 1})
        self._candidate_memory: dict[str, OrtValue] = {}
        self._ages = Ages()
        self._num_grown = 0

    def regroup(self, origin_S: IntArray, joined: Sequence[DeviceEncoded], source_positions: int) -> None:
        """As `Batch.regroup`, of a batch that is not empty afterwards."""
        if self._candidates is not None:
            offers = [encoded.offer for encoded in joined if encoded.offer is not None]
            sizes = [encoded.part.num_sentences for encoded in joined]
            self._candidates.regroup(Moves(origin_S, self._ages.num_sentences, sizes), offers)
        self._ages.regroup(origin_S, sum(encoded.part.num_sentences for encoded in joined))
        oldest = self._ages.oldest()
        self._num_grown = oldest if joined else steps_to_keep(self._num_grown, oldest)
        running, newcomers = self._part, self._join([encoded.part for encoded in joined], source_positions)
        if running is None:
            running, newcomers = newcomers, self._model.nobody
        self._part = self._model.regrouper.regroup(
            running,
            newcomers,
            origin_S,
            source_positions=source_positions,
            num_grown=self._num_grown,
        )
        if self._candidates is not None:
            self._gather(self._candidates)

    def step(self, rows: StepInput) -> StepOutput:
        """As `Batch.step`."""
        part = self._part
        assert part is not None
        S, K = rows.token_SK.shape
        num_padded = self._model.regrouper.pad(S) - S
        forced_SK = rows.forced_SK
        if self._candidates is not None and forced_SK.any():
            forced_SK, has_changed = self._candidates.find(forced_SK)
            if has_changed:
                self._gather(self._candidates)
        padded = StepInput(
            token_SK=_pad_rows(rows.token_SK, num_padded, 0),
            parent_SK=_pad_rows(rows.parent_SK, num_padded, 0),
            score_SK=_pad_rows(rows.score_SK, num_padded, -np.inf),
            forced_SK=_pad_rows(forced_SK, num_padded, 0),
            wants_attention=rows.wants_attention,
        )
        assert self._beam_size == K
        memory = {**part.memory, **self._candidate_memory}
        output, state = run_step(
            self._model.graphs.decoder_step, padded, memory, part.state, self._model.device
        )
        self._part = replace(part, state=state, num_rows=S * K)
        self._ages.step()
        self._num_grown += 1
        return StepOutput(
            top_score_SC=output.top_score_SC[:S],
            top_index_SC=output.top_index_SC[:S],
            forced_score_SK=output.forced_score_SK[:S],
            attention_SKT=None if output.attention_SKT is None else output.attention_SKT[:S],
        )

    def _join(self, parts: Sequence[Part], source_positions: int) -> Part:
        """One part of those who join."""
        if not parts:
            return self._model.nobody
        together = parts[0]
        for part in parts[1:]:
            everybody = np.arange(together.num_sentences + part.num_sentences)
            together = self._model.regrouper.regroup(
                together, part, everybody, source_positions=source_positions, num_grown=0
            )
        return together

    def _gather(self, candidates: BatchCandidates) -> None:
        ids_SC = candidates.ids
        num_padded = self._model.regrouper.pad(len(ids_SC)) - len(ids_SC)
        # As a sentence that is there: one of padding alone would have no candidate at all.
        repeated_SC = np.repeat(ids_SC[:1], num_padded, axis=0)
        self._candidate_memory = self._model.gather_candidates(np.concatenate([ids_SC, repeated_SC]))


def _pad_rows(array_SK: Array, num_padded: int, value: float) -> Array:
    return np.pad(array_SK, ((0, num_padded), (0, 0)), constant_values=value)
