"""The common part of decoders of a bundle's ONNX graphs.

Knows the graphs' contract and nothing of what they compute: tensors that begin with "memory." are fixed for a
sentence, those that begin with "state." pass from step to step.
"""

from abc import abstractmethod
from collections.abc import Container, Mapping
from typing import Any

import numpy as np
import onnxruntime
from dragoman_bundle.bundle import BundleGraphs
from dragoman_bundle.manifest import SHORTLIST_GRAPH, SHORTLIST_STEP_GRAPH, STEP_GRAPH

from dragoman_server.engine.decoder import Decoder, IntArray, StepInput
from dragoman_server.engine.onnx.candidates import CandidateChooser
from dragoman_server.engine.onnx.session import DecoderOptions, Sessions
from dragoman_server.engine.onnx.tensors import Array


def has_shortlist(graphs: Container[str], beam_size: int) -> bool:
    """Whether sentences of that beam size are kept to their candidates by a decoder that opened `graphs`."""
    return SHORTLIST_GRAPH in graphs and (beam_size > 1 or STEP_GRAPH not in graphs)


class OnnxDecoder(Decoder[Any]):
    """A bundle's encoder and decoder step on a device."""

    def __init__(self, bundle: BundleGraphs, options: DecoderOptions, sessions: Sessions) -> None:
        """`options` name the device and the precision that were chosen; `sessions` are the open graphs."""
        self.path = bundle.path
        self.options = options
        self.sessions = sessions
        self.device = options.device
        """Where the graphs run: "cpu" or "cuda"."""
        self.precision = options.precision
        """Precision of the graphs: "fp32", "fp16" or "int8"."""
        self.providers = {graph: str(session.get_providers()[0]) for graph, session in sessions.items()}
        """The graphs, each with the onnxruntime provider that it really runs on."""
        manifest = bundle.manifest
        self.source_vocabulary = manifest.source_vocabulary
        self.target_vocabulary = manifest.target_vocabulary
        self.bos, self.eos = manifest.target_ids.bos, manifest.target_ids.eos
        self.contract = manifest.contract
        self.candidate_axes: Mapping[str, int] = {}
        self._chooser: CandidateChooser | None = None
        if SHORTLIST_GRAPH in sessions:
            assert bundle.shortlist is not None
            assert manifest.shortlist is not None
            self._chooser = CandidateChooser(bundle.shortlist, self._gather)
            # Not every precision has all of the tensors.
            specs = [spec for spec in manifest.shortlist.memory if options.precision in spec.dtype]
            self.candidate_axes = {spec.name: spec.shape.index("C") for spec in specs}
        self._pad = manifest.source_ids.pad
        self._memory = [spec.name for spec in self.contract.memory]
        self._state = [spec.name for spec in self.contract.state]

    def has_shortlist(self, beam_size: int) -> bool:
        """Whether sentences of that beam size are kept to their candidates: on a CPU, greedy ones of a small
        vocabulary are not.

        At each step every sentence's own part of the output layer is read, and without a shortlist the whole
        layer, once for all: for a row a sentence that is less, while the layer is small.
        """
        return has_shortlist(self.sessions, beam_size)

    def chooser(self, beam_size: int) -> CandidateChooser | None:
        """The chooser of candidates for sentences of that beam size, if they have any."""
        return self._chooser if self.has_shortlist(beam_size) else None

    def step_session(self, beam_size: int) -> onnxruntime.InferenceSession:
        """The session that steps sentences of that beam size."""
        return self.sessions[SHORTLIST_STEP_GRAPH if self.has_shortlist(beam_size) else STEP_GRAPH]

    @abstractmethod
    def _gather(self, candidates_SC: IntArray) -> Mapping[str, Array]:
        """The memory of candidates, as encoded sentences carry it."""

    def try_out(self) -> None:
        """Decodes a token greedily and one in a beam, which loads whatever the device loads late."""
        for beam_size in (1, 2):
            batch = self.open_batch(beam_size)
            batch.regroup(np.zeros(1, np.int64), [self.encode([[self._pad]], beam_size)], 1)
            none_SK = np.zeros((1, beam_size), np.int64)
            batch.step(
                StepInput(
                    token_SK=none_SK + self.bos,
                    parent_SK=none_SK,
                    score_SK=np.zeros((1, beam_size), np.float32),
                    forced_SK=none_SK,
                    wants_attention=True,
                )
            )
