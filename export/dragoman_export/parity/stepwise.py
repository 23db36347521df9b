"""Two models stepped side by side along the same tokens, each from its own states.

Shapes: S sentences, K beam (1 here), U tokens, T source positions.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dragoman_export.graphs.encoder_and_step import DecoderStepGraph, EncoderGraph
from dragoman_export.graphs.trace import tensor_names
from dragoman_export.parity.onnx_stepper import Arrays, OnnxStepper
from dragoman_export.shortlist.stepper import ShortlistStepper
from dragoman_training.data.batching import pad_ids
from dragoman_training.decoding.search import Ids, Scores
from dragoman_training.models import Seq2Seq


@dataclass(frozen=True, kw_only=True)
class StepDifferences:
    """How far the graphs were from PyTorch at every token of every sentence; one entry per token."""

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


@torch.inference_mode()
def compare_steps(
    model: Seq2Seq,
    stepper: OnnxStepper,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    candidates: Sequence[Ids] | None = None,
) -> StepDifferences:
    """Steps a model and its graphs along `targets`. Sources end in eos; so do targets, where they ended.

    With `candidates`, two or more for each sentence and all its target's tokens among them, the stepper is
    one with a shortlist, and the model is kept to them.
    """
    sentences = len(sources)
    if candidates is None:
        context = stepper.encode(sources)
    else:
        assert isinstance(stepper, ShortlistStepper)
        context = stepper.encode(sources, candidates)
        model = kept_to(model, candidates)
    reference = _Reference(model, sources, stepper.source_pad_id)
    lengths = np.array([len(target) for target in targets])
    forced_SU = pad_ids(targets, stepper.eos_id).numpy()
    token_S1 = np.full((sentences, 1), stepper.bos_id, np.int64)
    parent_S1 = np.arange(sentences, dtype=np.int64)[:, None]
    score_S1 = np.zeros((sentences, 1), np.float32)
    parts: list[Arrays] = []
    for position in range(forced_SU.shape[1]):
        forced_S1 = forced_SU[:, position : position + 1]
        expected = reference.step(token_S1, parent_S1, score_S1, forced_S1)
        found, context = stepper.run_step(context, token_S1, parent_S1, score_S1, forced_SK=forced_S1)
        apart = {name: np.abs(found[name] - expected[name]) for name in expected}
        parts.append(
            {
                "sentence": np.arange(sentences),
                "position": np.full(sentences, position),
                "score": apart["forced_score"][:, 0],
                "candidates": apart["top_score"].max(axis=1),
                "attention": apart["attention"].max(axis=(1, 2)),
            }
        )
        for name in parts[-1]:
            parts[-1][name] = parts[-1][name][position < lengths]
        token_S1 = forced_S1
    return StepDifferences(**{name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def score_alone(
    stepper: OnnxStepper, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Scores:
    """The log-probability that the graphs give each target, the one row of its sentence: [S], in nats."""
    sentences = len(sources)
    context = stepper.encode(sources)
    lengths_S1 = np.array([[len(target)] for target in targets])
    forced_SU = pad_ids(targets, stepper.eos_id).numpy()
    token_S1 = np.full((sentences, 1), stepper.bos_id, np.int64)
    parent_S1 = np.arange(sentences, dtype=np.int64)[:, None]
    score_S1 = np.zeros((sentences, 1), np.float32)
    for position in range(forced_SU.shape[1]):
        forced_S1 = forced_SU[:, position : position + 1]
        found, context = stepper.run_step(context, token_S1, parent_S1, score_S1, forced_SK=forced_S1)
        score_S1 = np.where(position < lengths_S1, found["forced_score"], score_S1)
        token_S1 = forced_S1
    return score_S1[:, 0]


class _KeptOutput(nn.Module):
    """An output layer that says nothing but a sentence's candidates; one row per sentence."""

    def __init__(self, output: nn.Module, candidates: Sequence[Ids], vocabulary: int) -> None:
        super().__init__()
        self.output = output
        self.barred_SV = torch.ones(len(candidates), vocabulary, dtype=torch.bool)
        for barred_V, own in zip(self.barred_SV, candidates, strict=True):
            barred_V[torch.from_numpy(own)] = False

    def forward(self, features_SD: Tensor) -> Tensor:
        return self.output(features_SD).masked_fill(self.barred_SV, -torch.inf)


def kept_to(model: Seq2Seq, candidates: Sequence[Ids]) -> Seq2Seq:
    """The model, its parameters shared, with every sentence kept to its candidates."""
    kept = copy.copy(model)
    # What a module is made of is in dicts, which a copy would share with the model.
    kept._modules = dict(model._modules)
    kept._modules["output"] = _KeptOutput(model.output, candidates, model.output.embedding.num_embeddings)
    return kept


class _Reference:
    """The model itself under the contract of the graphs."""

    def __init__(self, model: Seq2Seq, sources: Sequence[Sequence[int]], pad_id: int) -> None:
        memory_names, state_names = tensor_names(model)
        self._step = DecoderStepGraph(
            model,
            tuple(name.removeprefix("memory.") for name in memory_names),
            tuple(name.removeprefix("state.") for name in state_names),
        )
        length_S = torch.tensor([len(source) for source in sources])
        tensors = EncoderGraph(model)(pad_ids(sources, pad_id), length_S)
        self._memory: tuple[Tensor, ...] = tensors[: len(memory_names)]
        self._state: tuple[Tensor, ...] = tensors[len(memory_names) :]

    def step(self, *inputs: NDArray[np.generic]) -> Arrays:
        top_score, top_index, forced_score, attention, *state = self._step(
            *(torch.from_numpy(array) for array in inputs), self._memory, self._state
        )
        self._state = tuple(state)
        return {
            "top_score": top_score.numpy(),
            "top_index": top_index.numpy(),
            "forced_score": forced_score.numpy(),
            "attention": attention.numpy(),
        }
