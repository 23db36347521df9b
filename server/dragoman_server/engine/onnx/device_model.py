"""A bundle's graphs with everything between them on the device: what `OnnxDecoder` uses on a GPU.

Only the 2K candidates of a step, and attention where it is wanted, come to the host. What a shortlist takes
of the output layer is gathered anew at each regrouping: on a device that moves less than copying it from
batch to batch would, and the host has to know no more than the candidates' ids.

Shapes vary little, so that onnxruntime's arena of device memory does not grow with every new one: sentences
and rows are padded to the sizes of `padded_rows`, source positions and candidates to multiples. Only a
past that grows, such as a Transformer's, has a new length at each step. Steps of shapes that come often may
be captured and replayed (`captured_steps`): their batches are then regrouped into places, which the steps are
bound to.

Shape suffixes: S sentences, K beam, T source positions, C candidates of a sentence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnxruntime
from dragoman_bundle.bundle import Bundle
from dragoman_bundle.manifest import TensorContract
from onnxruntime import OrtValue

from dragoman_server.engine.decoder import IntArray, StepInput, StepOutput
from dragoman_server.engine.onnx.ages import Ages
from dragoman_server.engine.onnx.bound_run import run_bound, run_step
from dragoman_server.engine.onnx.candidates import CANDIDATE, BatchCandidates, CandidateChooser, Offer
from dragoman_server.engine.onnx.captured_steps import (
    NOT_CAPTURED,
    CapturedSteps,
    Place,
    StepShape,
    run_options,
)
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
        max_captured_shapes: int = 0,
    ) -> None:
        """With `pads`, tensors have few shapes, and rows that nobody needs.

        Steps of up to `max_captured_shapes` shapes are captured.
        """
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
        self.captured: CapturedSteps | None = None
        if max_captured_shapes:
            assert not grows(manifest.contract), "a state that grows has another shape at each step"
            self.captured = CapturedSteps(graphs.decoder_step, device=device, max_shapes=max_captured_shapes)
        self.uncaptured = run_options(NOT_CAPTURED)
        """For all other runs of the step: a session that captures would capture them too."""
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

    def gather_candidates(self, candidates_SC: IntArray, into: Mapping[str, OrtValue]) -> dict[str, OrtValue]:
        """The memory of the sentences' candidates, written to what `into` has a place for."""
        assert self.graphs.shortlist is not None
        return run_bound(
            self.graphs.shortlist,
            {"candidates": candidates_SC},
            {name: into.get(name, self.device) for name in self.candidate_memory},
        )


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
        self._positions = 0
        self._place: Place | None = None
        """Where memory lies, if its shape has places."""

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
        self._positions = source_positions
        # What is read lies in the place that the batch leaves, and so that one is released afterwards.
        left, self._place = self._place, self._take_place(len(origin_S))
        self._part = self._model.regrouper.regroup(
            running,
            newcomers,
            origin_S,
            source_positions=source_positions,
            num_grown=self._num_grown,
            into=None if self._place is None else self._place.memory,
        )
        if left is not None:
            left.release()
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
        output, state = self._run(padded, part)
        self._part = replace(part, state=state, num_rows=S * K)
        self._ages.step()
        self._num_grown += 1
        return StepOutput(
            top_score_SC=output.top_score_SC[:S],
            top_index_SC=output.top_index_SC[:S],
            forced_score_SK=output.forced_score_SK[:S],
            attention_SKT=None if output.attention_SKT is None else output.attention_SKT[:S],
        )

    def _run(self, rows: StepInput, part: Part) -> tuple[StepOutput, dict[str, OrtValue]]:
        """Replays the step if all of the batch is in its place, as it is from the second step there on."""
        model, shape = self._model, self._shape(len(rows.token_SK))
        place = self._place if self._place is not None and self._place.shape == shape else None
        if place is not None and part.state is place.state:
            return place.step(rows), place.state
        memory = {**part.memory, **self._candidate_memory}
        output, state = run_step(
            model.graphs.decoder_step,
            rows,
            memory,
            part.state,
            model.device,
            into=None if place is None else place.state,
            options=model.uncaptured,
        )
        if place is not None:
            return output, place.state
        if model.captured is not None:
            model.captured.count(shape, memory, state)
        return output, state

    def _take_place(self, num_sentences: int) -> Place | None:
        captured = self._model.captured
        if captured is None:
            return None
        return captured.take(self._shape(self._model.regrouper.pad(num_sentences)), self)

    def _shape(self, num_padded: int) -> StepShape:
        """That of a step over so many sentences, padding included."""
        candidates = 0 if self._candidates is None else self._candidates.width
        return StepShape(num_padded, self._beam_size, self._positions, candidates)

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
        place = self._place
        # A target prefix may have brought more candidates than its place has room for.
        fits = place is not None and place.shape.candidates == candidates.width
        self._candidate_memory = self._model.gather_candidates(
            np.concatenate([ids_SC, repeated_SC]), into=place.memory if place is not None and fits else {}
        )


def grows(contract: TensorContract) -> bool:
    """Whether a state grows by a step at each step, as a Transformer's does."""
    return any(spec.growth_axis is not None for spec in contract.state)


def _pad_rows(array_SK: Array, num_padded: int, value: float) -> Array:
    return np.pad(array_SK, ((0, num_padded), (0, 0)), constant_values=value)
