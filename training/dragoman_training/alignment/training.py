"""The training of an aligner: models one after the other, in both directions at once.

Each model starts from the lexicon of the one before.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import exp

import numpy as np

from dragoman_training.alignment.agreement import count_agreed
from dragoman_training.alignment.aligner import (
    ALIKE,
    Aligner,
    DirectedModel,
    Lexicon,
    WordPair,
    number_pairs,
)
from dragoman_training.alignment.chain import CHAIN, ModelName, first_model
from dragoman_training.alignment.corpus.spelling import likeness
from dragoman_training.alignment.corpus.text import WordRule
from dragoman_training.alignment.lexicon import Numbers, Smoothing, estimate_lexicon, uniform_lexicon
from dragoman_training.alignment.models.model import Direction, Model, Step

DEFAULT_ITERATIONS: dict[ModelName, int] = {"ibm1": 5, "ibm2": 0, "hmm": 5, "ibm3": 3, "ibm4": 3, "ibm5": 3}
"""The HMM learns more from model 1 than from model 2."""
MIN_PROBABILITY = 1e-6
"""What is less likely is not saved."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How an aligner is trained."""

    model: ModelName = "hmm"
    """The last of the chain."""
    iterations: Sequence[int] = ()
    """Of each model of the chain; a model with none is left out. Without numbers: `DEFAULT_ITERATIONS`, and
    model 2 only where it is the last."""
    diagonal: bool = False
    """Whether model 2 has the diagonal of Dyer et al. 2013 in place of a table."""
    agreement: bool = True
    """Whether the directions learn from what both believe, from the HMM on."""
    smoothing: Smoothing = Smoothing(alpha=0.01)  # noqa: RUF009
    """Of the lexicon."""
    spelling: float = 1.0
    """Prior count of two words of equal spelling; less for words that are only alike; 0 for none."""
    max_words: int = 100
    """A pair with a longer sentence is not learnt from."""

    def __post_init__(self) -> None:
        needed = CHAIN.index(self.model) + 1
        if not self.iterations:
            numbers = [number or 5 * (name == self.model) for name, number in DEFAULT_ITERATIONS.items()]
            object.__setattr__(self, "iterations", tuple(numbers))
        if len(self.iterations) < needed:
            raise ValueError(
                f"{len(self.iterations)} numbers of iterations: {self.model} needs {needed}, one for each of "
                f"{', '.join(CHAIN[:needed])}; 0 leaves a model out"
            )
        if min(self.iterations) < 0:
            raise ValueError(f"{min(self.iterations)} iterations: 0 is the least, and leaves a model out")
        if self.iterations[needed - 1] == 0:
            raise ValueError(
                f"0 iterations of {self.model}: it is the model to be trained, and needs 1 or more"
            )
        if self.smoothing.alpha < 0 or self.spelling < 0:
            raise ValueError("a prior count is below 0: 0 is the least, and smooths nothing")
        if self.max_words < 1:
            raise ValueError(f"at most {self.max_words} words a sentence: 1 is the least")


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """What a pass over the corpus found."""

    model: ModelName
    number: int
    """From 1 on."""
    num_iterations: int
    perplexity: tuple[float, float]
    """Of target words given source words, and the reverse, as the pass began."""
    seconds: float
    """Since the training began."""


def train_aligner(
    pairs: Sequence[WordPair],
    options: TrainingOptions,
    rule: WordRule,
    report: Callable[[Iteration], None] = lambda iteration: None,
) -> Aligner:
    """Trains on sentence pairs of normalized words. Raises ValueError where none can be learnt from."""
    began = time.monotonic()
    usable = [pair for pair in pairs if min(map(len, pair)) > 0 and max(map(len, pair)) <= options.max_words]
    if not usable:
        raise ValueError(
            f"none of the {len(pairs)} sentence pairs has words on both sides, and at most "
            f"{options.max_words}: there is nothing to learn from"
        )
    bitext, source, target = number_pairs(usable)
    with ThreadPoolExecutor(2) as pool:
        directions = list(pool.map(Direction.of, (bitext, bitext.reversed())))
        words = (source.words, target.words), (target.words, source.words)
        priors = [
            _prior(own, *spelling, options.spelling) for own, spelling in zip(directions, words, strict=True)
        ]
        lexicons = [uniform_lexicon(direction.cooccurrence) for direction in directions]
        models: list[Model] = []
        for name, num_iterations in zip(CHAIN, options.iterations, strict=False):
            if num_iterations == 0:
                continue
            start = partial(first_model, name, diagonal=options.diagonal)
            models = list(pool.map(start, directions, lexicons, models or (None, None)))
            for number in range(1, num_iterations + 1):
                steps = list(pool.map(_step, models, directions, lexicons))
                models = [step.next for step in steps]
                agreed = options.agreement and name not in ("ibm1", "ibm2")
                counts = _agreed(steps, directions) if agreed else [step.pair_P for step in steps]
                lexicons = [
                    estimate_lexicon(direction.cooccurrence, count_P, options.smoothing, prior_P)
                    for direction, count_P, prior_P in zip(directions, counts, priors, strict=True)
                ]
                report(
                    Iteration(
                        model=name,
                        number=number,
                        num_iterations=num_iterations,
                        perplexity=_perplexities(steps, directions),
                        seconds=time.monotonic() - began,
                    )
                )
            if name == options.model:
                break
    forward, backward = (
        DirectedModel(model=model, lexicon=_lexicon(direction, lexicon_P))
        for model, direction, lexicon_P in zip(models, directions, lexicons, strict=True)
    )
    return Aligner(
        name=options.model, rule=rule, source=source, target=target, forward=forward, backward=backward
    )


def _step(model: Model, direction: Direction, lexicon_P: Numbers) -> Step:
    return model.step(direction, lexicon_P)


def _agreed(steps: Sequence[Step], directions: Sequence[Direction]) -> tuple[Numbers, Numbers]:
    (one, other), (forward, backward) = directions, steps
    return count_agreed(one.cooccurrence, other.cooccurrence, forward.posterior_L, backward.posterior_L)


def _prior(
    direction: Direction, source: tuple[str, ...], target: tuple[str, ...], strength: float
) -> Numbers | None:
    """Prior counts of words that are spelt alike. [P]"""
    if strength == 0:
        return None
    alike_P = likeness(source, target, direction.cooccurrence.source_P, direction.cooccurrence.target_P)
    return np.where(alike_P >= ALIKE, strength * alike_P**2, 0.0)


def _perplexities(steps: Sequence[Step], directions: Sequence[Direction]) -> tuple[float, float]:
    one, other = (
        exp(min(700.0, -step.log_likelihood / int(direction.cooccurrence.target_size_S.sum())))
        for step, direction in zip(steps, directions, strict=True)
    )
    return one, other


def _lexicon(direction: Direction, lexicon_P: Numbers) -> Lexicon:
    """Without what is hardly possible."""
    kept_P = lexicon_P >= MIN_PROBABILITY
    before = np.concatenate([[0], np.cumsum(kept_P)])
    return Lexicon(
        first_V=before[direction.cooccurrence.first_V],
        target_P=direction.cooccurrence.target_P[kept_P],
        probability_P=lexicon_P[kept_P].astype(np.float32),
    )
