"""Exported graphs behind the reference beam search, on onnxruntime's CPU provider.

Shapes: S sentences, K beam, C = 2K candidates, T source positions, P rows of the step before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import onnxruntime
from dragoman_bundle.fusions import SLOW_FUSIONS
from dragoman_bundle.manifest import ENCODER_GRAPH, STEP_GRAPH
from dragoman_bundle.search import Candidates, Ids, Scores, pad_rows
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from numpy.typing import NDArray

from dragoman_export.threads import count_threads

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Context:
    """A batch between two steps: memory per sentence, state per row."""

    memory: Arrays
    state: Arrays


class OnnxStepper:
    """Steps the graphs of one precision."""

    def __init__(
        self,
        folder: Path,
        *,
        vocabulary_size: int,
        source_pad_id: int,
        bos_id: int,
        eos_id: int,
        step_graph: str = STEP_GRAPH,
    ) -> None:
        self.vocabulary_size = vocabulary_size
        self.bos_id = bos_id
        self.eos_id = eos_id
        self.source_pad_id = source_pad_id
        self._encoder = open_session(folder / f"{ENCODER_GRAPH}.onnx")
        self._decoder_step = open_session(folder / f"{step_graph}.onnx")

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

    def encode(self, sources: Sequence[Sequence[int]]) -> Context:
        """Memory and first state of sentences."""
        return self.run_encoder(sources)[1]

    def run_encoder(self, sources: Sequence[Sequence[int]]) -> tuple[Arrays, Context]:
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
        outputs = run_session(
            self._decoder_step,
            {
                "token": token_SK,
                "parent": parent_SK,
                "score": score_SK,
                "forced": forced_SK,
                **context.memory,
                **context.state,
            },
        )
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
