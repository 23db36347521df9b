"""The gate: what the exported graphs decode is what PyTorch decodes, or no bundle is written.

Two comparisons over batches of many lengths, sizes and beams, of sentences of random tokens:
- A whole beam search by each side. In fp32 the hypotheses must be the same tokens, and score the same.
- Step after step along the tokens of PyTorch's best hypothesis: the token's score, the candidates' scores and
  the attention. In fp16 and int8 that is the comparison that counts: a search may well choose otherwise
  between two words of nearly the same score, and a step may not be far off. That a search of theirs takes
  each row on from the right one they show against themselves: what it found must score the same alone.

The graphs of a shortlist are compared so with the whole vocabulary as candidates, and step by step with
random candidates, other ones for each sentence, against a model that is kept to them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from dragoman_bundle.manifest import SpecialIds

from dragoman_export.parity.onnx_stepper import OnnxStepper
from dragoman_export.parity.stepwise import StepDifferences, compare_steps, score_alone
from dragoman_export.shortlist.stepper import ShortlistStepper
from dragoman_training.decoding.search import Hypothesis, Ids, beam_search
from dragoman_training.decoding.stepper import TorchStepper
from dragoman_training.models import Seq2Seq
from dragoman_training.recipe.settings import DecodingConfig

BATCHES = (
    (1, (1,)),
    (1, (2, 17, 9)),
    (2, (7,)),
    (5, (100, 1, 2, 33, 12, 64, 5)),
    (8, (3, 17)),
    (5, tuple(range(1, 33))),
)
"""Beam size of each batch and its sentences' lengths, their end included."""
MAX_STEPS = 64
"""Longest output that is decoded."""
TOLERANCE = 1e-4
"""Largest difference in fp32 of a score or an attention weight."""
TIE = 1e-5
"""Hypotheses whose scores differ by less may change places."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """How far a lower precision may be off, at one token but for `beam_error`."""

    mean_error: float
    """Mean difference of a token's log-probability, in nats."""
    clear_margin: float
    """Where PyTorch prefers its best token by so many nats, the graphs prefer it too …"""
    clear_agreement: float
    """… at least in this share of the cases."""
    attention_error: float
    """Mean over tokens of the largest difference of an attention weight."""
    beam_error: float
    """Difference of a hypothesis's log-probability in a beam from what the same graphs give it alone."""


BOUNDS = {
    "fp16": Bound(
        mean_error=0.005, clear_margin=0.1, clear_agreement=0.99, attention_error=0.005, beam_error=0.05
    ),
    "int8": Bound(
        mean_error=0.05, clear_margin=0.5, clear_agreement=0.98, attention_error=0.05, beam_error=0.05
    ),
}
"""Sound models stay below: new ones at 0.0006 (fp16) and 0.018 (int8) at most, Bahdanau, Luong, structured
and Transformer models of 6M to 8M parameters at 0.033 to 0.045 in int8 after 5 to 20 epochs. Local-p went
beyond it, 0.051 after 10, before what predicts its window stayed in fp32 (`int8/kept.py`): a token's score
jumps where a window moves, which rounded states still make it do. With one int8 matrix of a Luong model
negated or shifted by a column the mean was 0.30 or more. With one scaled by 1.3 it was 0.03 to 0.70: an error
as small as the smallest of these passes. The attention of three trained Luong models and a Transformer was
off by 0.0001 to 0.0003 (fp16) and 0.005 to 0.014 (int8), and rows of their beams scored as alone to the bit.
`dragoman export` reports all but the last.
"""


class ParityError(ValueError):
    """The exported graphs do not decode as PyTorch does. Says what differed, where and by how much."""


@dataclass(frozen=True, kw_only=True)
class Parity:
    """How near the graphs came to PyTorch."""

    num_sentences: int
    """Sentences decoded by both."""
    num_identical: int
    """Of these, those whose best hypotheses are the same tokens."""
    num_tokens: int
    """Tokens compared step by step."""
    max_error: float
    """Largest difference of a token's log-probability, in nats."""
    mean_error: float
    """Mean difference of a token's log-probability, in nats."""
    attention_error: float
    """Mean over tokens of the largest difference of an attention weight."""

    def describe(self) -> str:
        """One line for people."""
        return (
            f"same translation of {self.num_identical} of {self.num_sentences} sentences; "
            f"log-probabilities of {self.num_tokens} tokens differ by {self.mean_error:.1e} in the mean, "
            f"{self.max_error:.1e} at most, their attention by {self.attention_error:.1e} in the mean"
        )


@dataclass(frozen=True)
class _Batch:
    decoding: DecodingConfig
    sources: list[list[int]]
    expected: list[list[Hypothesis]]


class ParityGate:
    """Decodes with PyTorch once, and holds the graphs of every precision against that."""

    def __init__(
        self,
        model: Seq2Seq,
        decoding: DecodingConfig,
        *,
        source_vocabulary: int,
        source_ids: SpecialIds,
        target_ids: SpecialIds,
        source_end: bool = True,
    ) -> None:
        self._model = model
        stepper = TorchStepper(
            model, source_pad_id=source_ids.pad, bos_id=target_ids.bos, eos_id=target_ids.eos
        )
        special = (source_ids.pad, source_ids.unk, source_ids.bos, source_ids.eos)
        ordinary = np.setdiff1d(np.arange(source_vocabulary), special)
        random = np.random.default_rng(1)
        end = [source_ids.eos] if source_end else []
        self._batches: list[_Batch] = []
        for beam_size, lengths in BATCHES:
            options = replace(
                decoding, beam_size=beam_size, max_output_tokens=min(decoding.max_output_tokens, MAX_STEPS)
            )
            sources = [
                [
                    *random.choice(ordinary, min(length, decoding.max_source_tokens) - len(end)).tolist(),
                    *end,
                ]
                for length in lengths
            ]
            self._batches.append(_Batch(options, sources, beam_search(stepper, sources, options)))

    def check(self, stepper: OnnxStepper, precision: str) -> Parity:
        """Decodes with the graphs. Raises ParityError where they differ by more than the precision allows."""
        num_identical = 0
        differences: list[StepDifferences] = []
        for batch in self._batches:
            found = beam_search(stepper, batch.sources, batch.decoding)
            if precision == "fp32":
                _check_hypotheses(batch, found)
            else:
                _check_beams(stepper, batch, found, precision)
            num_identical += sum(
                one[0].tokens == other[0].tokens for one, other in zip(found, batch.expected, strict=True)
            )
            targets = [_steps(hypotheses[0], stepper.eos_id) for hypotheses in batch.expected]
            steps = compare_steps(self._model, stepper, batch.sources, targets)
            if precision == "fp32":
                _check_steps(batch, steps)
            differences.append(steps)
        return self._conclude(precision, differences, num_identical)

    def check_shortlist(self, stepper: ShortlistStepper, precision: str) -> Parity:
        """Decodes with the graphs of a shortlist. Raises ParityError as `check` does.

        Returns how near they came with the whole vocabulary as candidates.
        """
        parity = self.check(stepper, precision)
        random = np.random.default_rng(2)
        differences: list[StepDifferences] = []
        for batch in self._batches:
            targets = [_steps(hypotheses[0], stepper.eos_id) for hypotheses in batch.expected]
            candidates = [
                _random_candidates(random, stepper.vocabulary_size, [*target, stepper.eos_id])
                for target in targets
            ]
            steps = compare_steps(self._model, stepper, batch.sources, targets, candidates)
            if precision == "fp32":
                _check_steps(batch, steps)
            differences.append(steps)
        self._conclude(precision, differences, num_identical=0)
        return parity

    def _conclude(self, precision: str, differences: Sequence[StepDifferences], num_identical: int) -> Parity:
        errors = np.concatenate([steps.score for steps in differences])
        parity = Parity(
            num_sentences=sum(len(batch.sources) for batch in self._batches),
            num_identical=num_identical,
            num_tokens=len(errors),
            max_error=float(errors.max()),
            mean_error=float(errors.mean()),
            attention_error=float(np.concatenate([steps.attention for steps in differences]).mean()),
        )
        if precision in BOUNDS:
            _check_bound(precision, BOUNDS[precision], parity, differences)
        return parity


def _steps(hypothesis: Hypothesis, eos_id: int) -> list[int]:
    return [*hypothesis.tokens, eos_id] if hypothesis.ended else list(hypothesis.tokens)


def _random_candidates(random: np.random.Generator, vocabulary: int, tokens: Sequence[int]) -> Ids:
    """The given tokens and two or more others, up to half of the vocabulary."""
    others = random.choice(vocabulary, random.integers(2, max(3, vocabulary // 2)), replace=False)
    return np.union1d(others, tokens)


def _check_hypotheses(batch: _Batch, found: Sequence[Sequence[Hypothesis]]) -> None:
    for source, expected, others in zip(batch.sources, batch.expected, found, strict=True):
        for rank, (one, other) in enumerate(zip(expected, others, strict=True)):
            apart = abs(one.score - other.score)
            # Written so that a score that is no number fails.
            if not (apart <= TOLERANCE and (one.tokens == other.tokens or apart <= TIE)):
                raise ParityError(
                    f"the fp32 graphs do not decode as PyTorch does: beam {batch.decoding.beam_size}, "
                    f"batch of {len(batch.sources)}, source of {len(source)} tokens, hypothesis {rank + 1}: "
                    f"PyTorch finds {list(one.tokens)} scoring {one.score:.6f}, "
                    f"the graphs {list(other.tokens)} scoring {other.score:.6f}"
                )


def _check_beams(
    stepper: OnnxStepper, batch: _Batch, found: Sequence[Sequence[Hypothesis]], precision: str
) -> None:
    """Holds each sentence's last hypothesis, seldom the first row throughout, against itself alone."""
    last = [hypotheses[-1] for hypotheses in found]
    alone = score_alone(stepper, batch.sources, [_steps(each, stepper.eos_id) for each in last])
    for source, one, score in zip(batch.sources, last, alone, strict=True):
        if not abs(one.log_probability - score) <= BOUNDS[precision].beam_error:
            raise ParityError(
                f"the {precision} graphs do not decode a beam as its rows alone: beam "
                f"{batch.decoding.beam_size}, batch of {len(batch.sources)}, source of {len(source)} tokens: "
                f"the search finds {list(one.tokens)} with a log-probability of {one.log_probability:.6f}, "
                f"which alone is {score:.6f}"
            )


def _check_steps(batch: _Batch, steps: StepDifferences) -> None:
    for name in ("score", "candidates", "attention"):
        apart = getattr(steps, name)
        worst = int(np.argmax(np.nan_to_num(apart, nan=np.inf)))
        if not apart[worst] <= TOLERANCE:
            raise ParityError(
                f"the fp32 graphs do not step as PyTorch does: {name} differs by {apart[worst]:.6f} at token "
                f"{steps.position[worst] + 1}, batch of {len(batch.sources)}, source of "
                f"{len(batch.sources[steps.sentence[worst]])} tokens; {TOLERANCE} is allowed"
            )


def _check_bound(
    precision: str, bound: Bound, parity: Parity, differences: Sequence[StepDifferences]
) -> None:
    if not parity.mean_error <= bound.mean_error:
        raise ParityError(
            f"the {precision} graphs are too far from PyTorch: a token's log-probability differs by "
            f"{parity.mean_error:.4f} nats in the mean over {parity.num_tokens} tokens, and by up to "
            f"{parity.max_error:.4f}; a mean of {bound.mean_error} is allowed"
        )
    clear = np.concatenate([steps.agrees[steps.margin >= bound.clear_margin] for steps in differences])
    if len(clear) and not clear.mean() >= bound.clear_agreement:
        raise ParityError(
            f"the {precision} graphs are too far from PyTorch: of {len(clear)} tokens that PyTorch prefers "
            f"by {bound.clear_margin} nats or more they prefer {clear.sum()}, and must prefer "
            f"{bound.clear_agreement:.0%}"
        )
    if not parity.attention_error <= bound.attention_error:
        raise ParityError(
            f"the {precision} graphs are too far from PyTorch: a token's attention differs by "
            f"{parity.attention_error:.4f} at its worst position, in the mean over {parity.num_tokens} "
            f"tokens; {bound.attention_error} is allowed"
        )
