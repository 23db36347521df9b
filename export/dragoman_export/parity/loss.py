"""What is lost by decoding with other numbers than PyTorch's, along PyTorch's own translations.

At each step both sides read the same token. PyTorch draws one from what it says of the next, and what counts
is how probable the other side holds that: on average that is the Kullback-Leibler divergence of the two,
in nats. PyTorch rounded to eight bits takes part as well: a sound int8 graph loses about as much.

Shapes: S sentences, U steps, N tokens of all sentences, T source positions, V target vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman_export.parity.onnx_stepper import OnnxStepper
from dragoman_export.parity.torch_steps import TorchSteps
from dragoman_export.shortlist.stepper import ShortlistStepper
from dragoman_training.decoding.search import Ids
from dragoman_training.models import Seq2Seq

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What a decoder says along given translations, token by token."""

    drawn_N: Floats
    """Log-probability of the token that PyTorch drew."""
    best_N: NDArray[np.int64]
    """The token that it prefers."""
    attention_NT: Floats
    tensors: dict[str, NDArray[Any]]
    """Memory, and the state after the last step, by their names in the graphs."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """How far a decoder's answers are from PyTorch's."""

    divergence_N: Floats
    """Estimate of the Kullback-Leibler divergence at each token, in nats: q/p - 1 - ln(q/p) of the drawn one.

    Never negative, of the same mean as -ln(q/p) and far less variance (Schulman 2020, "Approximating KL
    divergence", k3).
    """
    attention_N: Floats
    """Largest difference of an attention weight."""
    agrees_N: NDArray[np.bool_]
    """Whether both prefer the same token."""
    drawn_N: Floats
    """Absolute difference of the drawn token's log-probability, in nats."""
    tensors: dict[str, float]
    """Distance of each tensor of memory and state, as a share of its length."""


class OwnWords:
    """A model's own translations of some sentences, and what it says along them."""

    @torch.inference_mode()
    def __init__(
        self,
        model: Seq2Seq,
        sources: Sequence[Sequence[int]],
        *,
        pad_id: int,
        bos_id: int,
        eos_id: int,
        max_steps: int,
        follows_draws: bool,
    ) -> None:
        """Translates greedily, or with `follows_draws` as the tokens are drawn, until eos or `max_steps`."""
        self.sources = sources
        self.pad_id = pad_id
        generator = torch.Generator().manual_seed(1)
        steps = TorchSteps(model, sources, pad_id)
        token_S = torch.full((len(sources),), bos_id)
        runs_S = torch.ones(len(sources), dtype=torch.bool)
        read: list[Tensor] = []
        drawn: list[Tensor] = []
        runs: list[Tensor] = []
        entropy: list[Tensor] = []
        answers = _Collector()
        while len(read) < max_steps and runs_S.any():
            read.append(token_S)
            runs.append(runs_S)
            score_SV, attention_ST = steps.step(token_S[:, None])
            probability_SV = score_SV.exp()
            drawn.append(torch.multinomial(probability_SV, 1, generator=generator)[:, 0])
            entropy.append(torch.special.entr(probability_SV).sum(dim=1))
            answers.add(score_SV, attention_ST, drawn[-1])
            token_S = drawn[-1] if follows_draws else score_SV.argmax(dim=1)
            runs_S = runs_S & (token_S != eos_id)
        self.read_SU = torch.stack(read, dim=1)
        self.drawn_SU = torch.stack(drawn, dim=1)
        self.runs_US = torch.stack(runs).numpy()
        self.entropy_N: Floats = torch.stack(entropy).numpy()[self.runs_US].astype(np.float64)
        """Of what the model says of the next token, in nats."""
        self.sentence_N: NDArray[np.int64] = np.nonzero(self.runs_US)[1]
        """Each token's sentence, by its place."""
        self.answers = answers.of(self.runs_US, steps.tensors())

    @torch.inference_mode()
    def loss_of_model(self, model: Seq2Seq) -> Loss:
        """How far another model in PyTorch is along the same tokens."""
        steps = TorchSteps(model, self.sources, self.pad_id)
        answers = _Collector()
        for token_S, drawn_S in self._columns():
            answers.add(*steps.step(token_S[:, None]), drawn_S)
        return _loss(self.answers, answers.of(self.runs_US, steps.tensors()))

    def loss_of_graphs(self, stepper: OnnxStepper, candidates: Sequence[Ids] | None = None) -> Loss:
        """How far graphs are along the same tokens, those of a shortlist with each sentence's candidates."""
        if candidates is None:
            context = stepper.encode(self.sources)
        else:
            assert isinstance(stepper, ShortlistStepper)
            context = stepper.encode(self.sources, candidates)
        parent_S1 = np.arange(len(self.sources))[:, None]
        score_S1 = np.zeros((len(self.sources), 1), np.float32)
        answers = _Collector()
        for token_S, drawn_S in self._columns():
            token_S1, drawn_S1 = (ids_S[:, None].numpy() for ids_S in (token_S, drawn_S))
            found, context = stepper.run_step(context, token_S1, parent_S1, score_S1, forced_SK=drawn_S1)
            answers.parts.append(
                (found["forced_score"][:, 0], found["top_index"][:, 0], found["attention"][:, 0])
            )
        return _loss(self.answers, answers.of(self.runs_US, {**context.memory, **context.state}))

    def _columns(self) -> Iterator[tuple[Tensor, Tensor]]:
        return zip(self.read_SU.unbind(1), self.drawn_SU.unbind(1), strict=True)


class _Collector:
    """What a decoder says, step by step."""

    def __init__(self) -> None:
        self.parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
        """Log-probability of the token drawn [S], the best token [S] and attention [S, T] of each step."""

    def add(self, score_SV: Tensor, attention_ST: Tensor, drawn_S: Tensor) -> None:
        """What a model in PyTorch says of the next token, and which one was drawn."""
        drawn_score_S = score_SV.gather(1, drawn_S[:, None])[:, 0]
        self.parts.append((drawn_score_S.numpy(), score_SV.argmax(dim=1).numpy(), attention_ST.numpy()))

    def of(self, runs_US: NDArray[np.bool_], tensors: dict[str, NDArray[Any]]) -> Answers:
        """All of it but what came after a translation's end."""
        drawn_N, best_N, attention_NT = (np.stack(part)[runs_US] for part in zip(*self.parts, strict=True))
        return Answers(
            drawn_N=drawn_N.astype(np.float64),
            best_N=best_N,
            attention_NT=attention_NT.astype(np.float64),
            tensors=tensors,
        )


def _loss(expected: Answers, found: Answers) -> Loss:
    """How far `found` is from `expected`; what is no number stays none."""
    apart_N = found.drawn_N - expected.drawn_N
    with np.errstate(over="ignore", invalid="ignore"):
        divergence_N = np.expm1(apart_N) - apart_N
    return Loss(
        divergence_N=divergence_N,
        attention_N=np.abs(found.attention_NT - expected.attention_NT).max(axis=1),
        agrees_N=found.best_N == expected.best_N,
        drawn_N=np.abs(apart_N),
        tensors={name: _distance(value, found.tensors[name]) for name, value in expected.tensors.items()},
    )


def _distance(expected: NDArray[Any], found: NDArray[Any]) -> float:
    """Length of the difference, as a share of that of `expected`; of nothing but zeros, as it is."""
    assert expected.shape == found.shape
    apart, length = (
        float(np.linalg.norm(array.astype(np.float32).ravel()))
        for array in (found.astype(np.float32) - expected.astype(np.float32), expected)
    )
    return apart / length if length else apart
