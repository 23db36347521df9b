"""What is lost by decoding with other numbers than the reference's, along translations that both sides read.

In fp32 these are given, or the reference's own; in lower precisions they are its own.

At each step both sides read the same token. The reference draws one from what it says of the next, and what
counts is how probable the other side holds that: on average that is the Kullback-Leibler divergence of the
two, in nats. The reference rounded to eight bits takes part as well: a sound int8 graph loses about as much.

Two questions are asked of a lower precision, each with its bounds:
- Are they the graphs of this model? Rounding alone puts a sound int8 graph as far from the reference as that
  is when it rounds the same things, however deep the model is and however sure of itself. What is wrong with
  a graph comes on top of that, and shows in what it says or in the memory and state of the layer it is in.
- Does a user lose by them? A model that rounding ruins is refused though its graphs are sound.

Shapes: S sentences, U steps, N tokens of all sentences, T source positions, V target vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dragoman_bundle.search import Ids, Scores, Sentences, pad_rows
from numpy.typing import NDArray

from dragoman_export.parity.onnx_stepper import Arrays, Context, OnnxStepper, ShortlistStepper
from dragoman_export.reference.model import ReferenceModel, ReferenceSteps

Floats = NDArray[np.float64]


class ParityError(ValueError):
    """The exported graphs do not decode as the reference does. Says what differed, where and by how much."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What a decoder says along given translations, token by token."""

    drawn_N: Floats
    """Log-probability of the token that the reference drew."""
    top_N2: NDArray[np.floating[Any]]
    """Log-probabilities of the two tokens that it prefers, which a search goes on with."""
    best_N: NDArray[np.int64]
    """The token that it prefers."""
    attention_NT: Floats
    tensors: dict[str, NDArray[Any]]
    """Memory, and the state after the last step, by their names in the graphs."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """How far a decoder's answers are from the reference's."""

    divergence_N: Floats
    """Estimate of the Kullback-Leibler divergence at each token, in nats: q/p - 1 - ln(q/p) of the drawn one.

    Never negative, of the same mean as -ln(q/p) and far less variance (Schulman 2020, "Approximating KL
    divergence", k3).
    """
    attention_N: Floats
    """Largest difference of an attention weight."""
    candidates_N: Floats
    """Largest difference of the log-probability of one of the two best tokens."""
    agrees_N: NDArray[np.bool_]
    """Whether both prefer the same token."""
    drawn_N: Floats
    """Absolute difference of the drawn token's log-probability, in nats."""
    tensors: dict[str, float]
    """Distance of each tensor of memory and state, as a share of its length."""


class Words:
    """Translations of some sentences, and what a reference says along them, token by token."""

    def __init__(
        self, reference: ReferenceModel, sources: Sentences, targets: Sentences, *, pad_id: int, eos_id: int
    ) -> None:
        """`targets` are those that are given. Sources end in eos; so do targets, where they ended."""
        self.sources, self.pad_id = sources, pad_id
        self.read_US, self.drawn_US, self.runs_US = tokens_along(targets, bos_id=reference.bos, eos_id=eos_id)
        self.answers = self._answers(reference)

    @property
    def places_N(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The place of each token in its sentence, and that of its sentence."""
        position_N, sentence_N = np.nonzero(self.runs_US)
        return position_N, sentence_N

    def loss_of_reference(self, reference: ReferenceModel) -> Loss:
        """How far another reference is along the same tokens."""
        return _loss(self.answers, self._answers(reference))

    def loss_of_graphs(self, stepper: OnnxStepper, candidates: Sequence[Ids] | None = None) -> Loss:
        """How far graphs are along the same tokens, those of a shortlist with each sentence's candidates."""
        if candidates is None:
            context = stepper.encode(self.sources)
        else:
            assert isinstance(stepper, ShortlistStepper)
            context = stepper.encode(self.sources, candidates)
        parts: list[_Step] = []
        for found, after in steps_of_graphs(stepper, context, self.read_US, self.drawn_US):
            context = after
            top_S2 = found["top_score"][:, :2]
            parts.append(
                (found["forced_score"][:, 0], top_S2, found["top_index"][:, 0], found["attention"][:, 0])
            )
        return _loss(self.answers, _answers(parts, self.runs_US, {**context.memory, **context.state}))

    def _answers(self, reference: ReferenceModel) -> Answers:
        steps = ReferenceSteps(reference, self.sources, self.pad_id)
        parts = [
            _step(*steps.step(token_S[:, None]), drawn_S)
            for token_S, drawn_S in zip(self.read_US, self.drawn_US, strict=True)
        ]
        return _answers(parts, self.runs_US, steps.tensors())


class OwnWords(Words):
    """A model's own translations of some sentences, and what it says along them."""

    def __init__(
        self,
        reference: ReferenceModel,
        sources: Sentences,
        *,
        pad_id: int,
        eos_id: int,
        max_steps: int,
        follows_draws: bool,
        start: Sequence[int] = (),
    ) -> None:
        """Translates greedily, or with `follows_draws` as the tokens are drawn, until eos or `max_steps`.
        The first tokens are those of `start`."""
        self.sources, self.pad_id = sources, pad_id
        random = np.random.default_rng(1)
        steps = ReferenceSteps(reference, sources, pad_id)
        token_S = np.full(len(sources), reference.bos)
        runs_S = np.ones(len(sources), np.bool_)
        seen: list[tuple[Ids, Ids, NDArray[np.bool_], Floats]] = []
        parts: list[_Step] = []
        while len(seen) < max_steps and runs_S.any():
            score_SV, attention_ST = steps.step(token_S[:, None])
            probability_SV = np.exp(score_SV)
            drawn_S = _draw(probability_SV, random)
            entropy_S = -np.sum(probability_SV * np.where(probability_SV > 0, score_SV, 0), axis=1)
            seen.append((token_S, drawn_S, runs_S, entropy_S))
            parts.append(_step(score_SV, attention_ST, drawn_S))
            if len(seen) <= len(start):
                token_S = np.full_like(token_S, start[len(seen) - 1])
            else:
                token_S = drawn_S if follows_draws else score_SV.argmax(axis=1)
            runs_S = runs_S & (token_S != eos_id)
        self.read_US, self.drawn_US, self.runs_US, entropy_US = map(np.stack, zip(*seen, strict=True))
        self.entropy_N: Floats = entropy_US[self.runs_US]
        """The entropy of what the model says of the next token, in nats."""
        self.answers = _answers(parts, self.runs_US, steps.tensors())


def tokens_along(targets: Sentences, *, bos_id: int, eos_id: int) -> tuple[Ids, Ids, NDArray[np.bool_]]:
    """The tokens read along targets, those that follow, and where a target has not ended, [U, S] each."""
    follow_US = np.ascontiguousarray(pad_rows(targets, eos_id).T)
    read_US = np.concatenate([np.full_like(follow_US[:1], bos_id), follow_US[:-1]])
    return read_US, follow_US, np.arange(len(follow_US))[:, None] < [len(target) for target in targets]


def steps_of_graphs(
    stepper: OnnxStepper, context: Context, read_US: Ids, forced_US: Ids
) -> Iterator[tuple[Arrays, Context]]:
    """What graphs return when they read these tokens, one row for each sentence, each from its own states."""
    parent_S1 = np.arange(read_US.shape[1])[:, None]
    score_S1 = np.zeros(parent_S1.shape, np.float32)
    for token_S1, forced_S1 in zip(read_US[..., None], forced_US[..., None], strict=True):
        found, context = stepper.run_step(context, token_S1, parent_S1, score_S1, forced_SK=forced_S1)
        yield found, context


def score_alone(stepper: OnnxStepper, sources: Sentences, targets: Sentences) -> Scores:
    """The log-probability that the graphs give each target, the one row of its sentence: [S], in nats."""
    read_US, forced_US, runs_US = tokens_along(targets, bos_id=stepper.bos_id, eos_id=stepper.eos_id)
    steps = steps_of_graphs(stepper, stepper.encode(sources), read_US, forced_US)
    score_US = np.stack([found["forced_score"][:, 0] for found, _ in steps])
    return np.where(runs_US, score_US, 0).sum(axis=0)


_Step = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
"""Log-probabilities of the token drawn [S] and of the two best [S, 2]; the best [S], and attention [S, T]."""


def _step(score_SV: Floats, attention_ST: Floats, drawn_S: Ids) -> _Step:
    """What a reference says of the next token, and which one was drawn."""
    drawn_score_S = np.take_along_axis(score_SV, drawn_S[:, None], axis=1)[:, 0]
    top_S2 = -np.sort(np.partition(-score_SV, 1, axis=1)[:, :2], axis=1)
    return drawn_score_S, top_S2, score_SV.argmax(axis=1), attention_ST


def _answers(parts: Sequence[_Step], runs_US: NDArray[np.bool_], tensors: dict[str, NDArray[Any]]) -> Answers:
    """All of it but what came after a translation's end."""
    drawn_N, top_N2, best_N, attention_NT = (np.stack(part)[runs_US] for part in zip(*parts, strict=True))
    return Answers(
        drawn_N=drawn_N.astype(np.float64),
        top_N2=top_N2,
        best_N=best_N,
        attention_NT=attention_NT.astype(np.float64),
        tensors=tensors,
    )


def _draw(probability_SV: Floats, random: np.random.Generator) -> Ids:
    """A token for each sentence, each as probable as it says."""
    below_SV = probability_SV.cumsum(axis=1)
    mark_S1 = random.random((len(below_SV), 1)) * below_SV[:, -1:]
    return (below_SV <= mark_S1).sum(axis=1)


def _loss(expected: Answers, found: Answers) -> Loss:
    """How far `found` is from `expected`; what is no number stays none."""
    apart_N = found.drawn_N - expected.drawn_N
    with np.errstate(over="ignore", invalid="ignore"):
        divergence_N = np.expm1(apart_N) - apart_N
        candidates_N = np.abs(found.top_N2 - expected.top_N2).max(axis=1)
    return Loss(
        divergence_N=divergence_N,
        attention_N=np.abs(found.attention_NT - expected.attention_NT).max(axis=1),
        candidates_N=candidates_N,
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


@dataclass(frozen=True, kw_only=True)
class Bound:
    """How far a lower precision may be off, but for `beam_error` in shares of the reference that rounds."""

    divergence: float
    distance: float
    """Distance of each tensor of memory and state."""
    attention: float
    """Mean over tokens of the largest difference of an attention weight."""
    beam_error: float
    """Difference of a hypothesis's log-probability in a beam from what the same graphs give it alone."""


BOUNDS = {
    "fp16": Bound(divergence=0.25, distance=0.25, attention=0.5, beam_error=0.05),
    "int8": Bound(divergence=4, distance=3, attention=3, beam_error=0.05),
}
"""docs/decisions/0015-what-a-precision-loses.md has what sound and broken graphs come to."""
LEAST_DIVERGENCE = 1e-6
LEAST_DISTANCE = 2e-3
LEAST_ATTENTION = 1e-3
"""What is allowed wherever the reference rounding to int8 is hardly off at all."""
MAX_LOSS_SHARE = 0.1
"""Largest divergence as a share of what the model itself leaves open, its entropy …"""
MAX_LOSS = 0.01
"""… and in nats, a hundredth of a token's probability, which no model is refused for."""


def check_loss(precision: str, found: Loss, rounded: Loss, entropy: float) -> None:
    """Raises ParityError where graphs of a lower precision are farther off than is allowed.

    `rounded` is how far the reference is that rounds to eight bits, and `entropy` its mean, in nats.
    """
    bound, refused = BOUNDS[precision], f"the {precision} graphs are too far from the reference:"
    divergence, reference = (float(each.divergence_N.mean()) for each in (found, rounded))
    tokens = len(found.divergence_N)
    told = f"over {tokens} tokens, and the reference rounding to eight bits {reference:.2g};"
    # Written so that what is no number fails.
    allowed = max(LEAST_DIVERGENCE, bound.divergence * reference)
    if not divergence <= allowed:
        raise ParityError(
            f"{refused} they lose {divergence:.2g} nats a token {told} {allowed:.2g} is allowed"
        )
    for name, distance in found.tensors.items():
        allowed = max(LEAST_DISTANCE, bound.distance * rounded.tensors[name])
        if not distance <= allowed:
            raise ParityError(
                f"{refused} their {name} is off by {distance:.2%} of its length; the reference rounding to "
                f"eight bits by {rounded.tensors[name]:.2%}; {allowed:.2%} is allowed"
            )
    attention, reference = (float(each.attention_N.mean()) for each in (found, rounded))
    allowed = max(LEAST_ATTENTION, bound.attention * reference)
    if not attention <= allowed:
        raise ParityError(
            f"{refused} a token's attention differs by {attention:.2g} at its worst position, in the mean "
            f"over {tokens} tokens; {allowed:.2g} is allowed"
        )
    allowed = max(MAX_LOSS, MAX_LOSS_SHARE * entropy)
    if not divergence <= allowed:
        raise ParityError(
            f"the {precision} graphs are sound, but the model loses too much by rounding: {divergence:.2g} "
            f"nats a token, where it is unsure by {entropy:.2g} itself; {allowed:.2g} is allowed"
        )
