"""Exported graphs behind the reference beam search, on onnxruntime's CPU provider, and threads for it.

Shapes: S sentences, K beam, C candidates, T source positions, P rows of the step before.
"""

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import onnxruntime
from dragoman_bundle.decoding import SLOW_FUSIONS
from dragoman_bundle.machine import count_processors
from dragoman_bundle.manifest import ENCODER_GRAPH, SHORTLIST_GRAPH, SHORTLIST_STEP_GRAPH, STEP_GRAPH
from dragoman_bundle.search import Candidates, Ids, Scores, Sentences, pad_rows
from dragoman_bundle.shortlist import PADDING
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from numpy.typing import NDArray

MAX_THREADS = 4
"""Threads beyond which an export is no faster: most of its time goes into one, and what the gate multiplies
are some tens of rows."""


def count_threads() -> int:
    """What OMP_NUM_THREADS says; or the processors that this process may use, and no more than pay."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    return min(count_processors(), MAX_THREADS)


Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Context:
    """A batch between two steps: memory per sentence, state per row."""

    memory: Arrays
    state: Arrays


@dataclass(eq=False)
class OnnxStepper:
    """Steps the graphs of one precision, which lie in the folder."""

    folder: Path
    _: KW_ONLY
    vocabulary_size: int
    source_pad_id: int
    bos_id: int
    eos_id: int
    step_graph: ClassVar[str] = STEP_GRAPH

    def __post_init__(self) -> None:
        self._encoder = open_session(self.folder / f"{ENCODER_GRAPH}.onnx")
        self._decoder_step = open_session(self.folder / f"{self.step_graph}.onnx")

    @classmethod
    def between(cls, source: Tokenizer, target: Tokenizer, folder: Path) -> Self:
        """Steps the graphs in the folder, whose ids are those of the tokenizers."""
        return cls(
            folder,
            vocabulary_size=target.vocabulary_size,
            source_pad_id=source.pad_id,
            bos_id=target.bos_id,
            eos_id=target.eos_id,
        )

    def encode(self, sources: Sentences) -> Context:
        """Memory and first state of sentences."""
        return self.run_encoder(sources)[1]

    def run_encoder(self, sources: Sentences) -> tuple[Arrays, Context]:
        """The same with all that the graph returns beside it, by name."""
        length_S = np.array([len(source) for source in sources], np.int64)
        source_ST = pad_rows(sources, self.source_pad_id)
        outputs = run_session(self._encoder, {"source": source_ST, "source_length": length_S})
        memory, state = (
            {name: outputs.pop(name) for name in list(outputs) if name.startswith(kind)}
            for kind in ("memory.", "state.")
        )
        return outputs, Context(memory=memory, state=state)

    def step(
        self, context: Context, token_SK: Ids, parent_SK: Ids, score_SK: Scores
    ) -> tuple[Candidates, Context]:
        """Advances every row and returns each sentence's 2K best continuations."""
        outputs, context = self.run_step(context, token_SK, parent_SK, score_SK, forced_SK=token_SK)
        return Candidates(score_SC=outputs["top_score"], index_SC=outputs["top_index"]), context

    def run_step(
        self, context: Context, token_SK: Ids, parent_SK: Ids, score_SK: Scores, *, forced_SK: Ids
    ) -> tuple[Arrays, Context]:
        """One step with all that the graph returns beside the state, by name."""
        rows: Arrays = {"token": token_SK, "parent": parent_SK, "score": score_SK, "forced": forced_SK}
        outputs = run_session(self._decoder_step, rows | context.memory | context.state)
        state = {name: outputs.pop(f"next_{name}") for name in context.state}
        return outputs, Context(memory=context.memory, state=state)

    def select(self, context: Context, sentences: Ids) -> Context:
        """The context of some of its sentences."""
        memory = {name: value[sentences] for name, value in context.memory.items()}
        return Context(memory=memory, state=context.state)


def open_session(path: Path) -> onnxruntime.InferenceSession:
    """A session on the CPU."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # By itself it counts processors that a container may not use.
    options.intra_op_num_threads = count_threads()
    # Threads that wait in a loop would take the cores from the reference between two runs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"], disabled_optimizers=SLOW_FUSIONS["cpu"]
    )


def run_session(session: onnxruntime.InferenceSession, inputs: Arrays) -> Arrays:
    """All outputs of a session, by name."""
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


class ShortlistStepper(OnnxStepper):
    """Steps the graphs of one precision over candidates: the whole vocabulary where none are given."""

    step_graph: ClassVar[str] = SHORTLIST_STEP_GRAPH

    @cached_property
    def _shortlist(self) -> onnxruntime.InferenceSession:
        return open_session(self.folder / f"{SHORTLIST_GRAPH}.onnx")

    @property
    def output_weights(self) -> int:
        """The number of the output layer's weights, which a sentence has a copy of whose candidates are
        all."""
        outputs = {output.name: output for output in self._shortlist.get_outputs()}
        return self.vocabulary_size * int(outputs["memory.output_weight"].shape[1])

    def encode(self, sources: Sentences, candidates: Sequence[Ids] | None = None) -> Context:
        """Memory and first state of sentences, each with the target tokens it may use."""
        if candidates is None:
            candidates = [np.arange(self.vocabulary_size)] * len(sources)
        context = super().encode(sources)
        width = max(2, *(len(of_sentence) for of_sentence in candidates))
        candidates_SC = np.full((len(sources), width), PADDING, np.int64)
        for row_C, of_sentence in zip(candidates_SC, candidates, strict=True):
            row_C[: len(of_sentence)] = of_sentence
        memory = run_session(self._shortlist, {"candidates": candidates_SC})
        return Context(memory={**context.memory, **memory}, state=context.state)

    def run_step(
        self, context: Context, token_SK: Ids, parent_SK: Ids, score_SK: Scores, *, forced_SK: Ids
    ) -> tuple[Arrays, Context]:
        """Steps as without a shortlist; the score of a forced token that is no candidate means nothing."""
        offered_S1C = (context.memory["memory.candidate"] * context.memory["memory.candidate_mask"])[:, None]
        place_SK = (offered_S1C == forced_SK[:, :, None]).argmax(axis=2)
        return super().run_step(context, token_SK, parent_SK, score_SK, forced_SK=place_SK)
