"""The shortlist's graphs behind the reference beam search.

Shapes: S sentences, K beam, C candidates of a sentence.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from dragoman_bundle.manifest import SHORTLIST_GRAPH, SHORTLIST_STEP_GRAPH
from dragoman_bundle.search import Ids, Scores
from dragoman_bundle.shortlist import PADDING

from dragoman_export.parity.onnx_stepper import Arrays, Context, OnnxStepper, open_session, run_session


class ShortlistStepper(OnnxStepper):
    """Steps the graphs of one precision over candidates: the whole vocabulary where none are given."""

    def __init__(
        self, folder: Path, *, vocabulary_size: int, source_pad_id: int, bos_id: int, eos_id: int
    ) -> None:
        super().__init__(
            folder,
            vocabulary_size=vocabulary_size,
            source_pad_id=source_pad_id,
            bos_id=bos_id,
            eos_id=eos_id,
            step_graph=SHORTLIST_STEP_GRAPH,
        )
        self._shortlist = open_session(folder / f"{SHORTLIST_GRAPH}.onnx")
        weight = next(each for each in self._shortlist.get_outputs() if each.name == "memory.output_weight")
        self.output_weights = vocabulary_size * int(weight.shape[1])
        """Of the output layer: what a sentence has a copy of whose candidates are all."""

    def encode(self, sources: Sequence[Sequence[int]], candidates: Sequence[Ids] | None = None) -> Context:
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
        """As without a shortlist; the score of a forced token that is no candidate means nothing."""
        offered_S1C = (context.memory["memory.candidate"] * context.memory["memory.candidate_mask"])[:, None]
        place_SK = (offered_S1C == forced_SK[:, :, None]).argmax(axis=2)
        return super().run_step(context, token_SK, parent_SK, score_SK, forced_SK=place_SK)
