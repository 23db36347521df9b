"""References and graphs stepped along given tokens, one row for each sentence, each from its own states.

Shapes: S sentences, U tokens, T source positions, V target vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dragoman_bundle.search import Ids, Scores, pad_rows
from numpy.typing import NDArray

from dragoman_export.model import KeptTo, ReferenceModel
from dragoman_export.parity.onnx_stepper import Arrays, OnnxStepper
from dragoman_export.reference.model import Array
from dragoman_export.shortlist.stepper import ShortlistStepper


@dataclass(frozen=True, kw_only=True)
class StepDifferences:
    """How far the graphs were from the reference at every token of every sentence; one entry per token."""

    sentence: NDArray[np.int64]
    """The token's sentence, by its place."""
    position: NDArray[np.int64]
    """The token's place in its sentence."""
    score: NDArray[np.float32]
    """Absolute difference of the token's log-probability, in nats."""
    candidates: NDArray[np.float32]
    """Largest absolute difference of a candidate's score."""
    attention: NDArray[np.float32]
    """Largest absolute difference of an attention weight."""


class ReferenceSteps:
    """A reference, from the beginning of sentences."""

    def __init__(self, reference: ReferenceModel, sources: Sequence[Sequence[int]], pad_id: int) -> None:
        self._reference = reference
        length_S = np.array([len(source) for source in sources])
        self._memory, self._state = reference.encode(pad_rows(sources, pad_id), length_S)

    def step(self, token_S1: Ids) -> tuple[Array, Array]:
        """Reads a token for each sentence: log-probabilities [S, V] of what follows, and attention [S, T]."""
        logits_SV, attention_S1T, self._state = self._reference.step(token_S1, self._memory, self._state)
        return self._reference.token_scores(logits_SV), attention_S1T[:, 0]

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Memory, and the state after the last step, by their names in the graphs."""
        memory = {f"memory.{name}": value for name, value in self._memory.items()}
        return memory | {f"state.{name}": value for name, value in self._state.items()}


def compare_steps(
    reference: ReferenceModel,
    stepper: OnnxStepper,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    candidates: Sequence[Ids] | None = None,
) -> StepDifferences:
    """Steps a reference and graphs along `targets`. Sources end in eos; so do targets, where they ended.

    With `candidates`, two or more for each sentence and all its target's tokens among them, the stepper is
    one with a shortlist, and the reference is kept to them.
    """
    sentences = len(sources)
    if candidates is None:
        context = stepper.encode(sources)
    else:
        assert isinstance(stepper, ShortlistStepper)
        context = stepper.encode(sources, candidates)
        reference = KeptTo(reference, candidates)
    steps = ReferenceSteps(reference, sources, stepper.source_pad_id)
    lengths = np.array([len(target) for target in targets])
    token_S1 = np.full((sentences, 1), stepper.bos_id, np.int64)
    parent_S1 = np.arange(sentences, dtype=np.int64)[:, None]
    score_S1 = np.zeros((sentences, 1), np.float32)
    parts: list[Arrays] = []
    for position, forced_S in enumerate(pad_rows(targets, stepper.eos_id).T):
        forced_S1 = np.ascontiguousarray(forced_S[:, None])
        scores_SV, attention_ST = steps.step(token_S1)
        found, context = stepper.run_step(context, token_S1, parent_S1, score_S1, forced_SK=forced_S1)
        best_S2 = -np.sort(np.partition(-scores_SV, 1, axis=1)[:, :2], axis=1)
        expected_S1 = np.take_along_axis(scores_SV, forced_S1, axis=1)
        runs_S = position < lengths
        parts.append(
            {
                "sentence": np.flatnonzero(runs_S),
                "position": np.full(runs_S.sum(), position),
                "score": np.abs(found["forced_score"] - expected_S1)[runs_S, 0],
                "candidates": np.abs(found["top_score"] - best_S2)[runs_S].max(axis=1),
                "attention": np.abs(found["attention"][:, 0] - attention_ST)[runs_S].max(axis=1),
            }
        )
        token_S1 = forced_S1
    return StepDifferences(**{name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def score_alone(
    stepper: OnnxStepper, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Scores:
    """The log-probability that the graphs give each target, the one row of its sentence: [S], in nats."""
    sentences = len(sources)
    context = stepper.encode(sources)
    lengths_S1 = np.array([[len(target)] for target in targets])
    token_S1 = np.full((sentences, 1), stepper.bos_id, np.int64)
    parent_S1 = np.arange(sentences, dtype=np.int64)[:, None]
    score_S1 = np.zeros((sentences, 1), np.float32)
    for position, forced_S in enumerate(pad_rows(targets, stepper.eos_id).T):
        forced_S1 = np.ascontiguousarray(forced_S[:, None])
        found, context = stepper.run_step(context, token_S1, parent_S1, score_S1, forced_SK=forced_S1)
        score_S1 = np.where(position < lengths_S1, found["forced_score"], score_S1)
        token_S1 = forced_S1
    return score_S1[:, 0]
