"""The training of an aligner: models one after the other, in both directions at once.

Each model starts from the lexicon of the one before.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import exp

import numpy as np
from numba import njit

from dragoman_training.alignment.aligner import ALIKE, Aligner, DirectedModel
from dragoman_training.alignment.bitext import Links, Numbers, Vocabulary, WordPair, WordRule, number_pairs
from dragoman_training.alignment.lexicon import Lexicon, estimate_lexicon, likeness, uniform_lexicon
from dragoman_training.alignment.models import Direction, Model, Posteriors, model_kind

DEFAULT_ITERATIONS = {"ibm1": 5, "ibm2": 0, "hmm": 5, "ibm3": 3, "ibm4": 3, "ibm5": 3}
"""The HMM learns more from model 1 than from model 2."""
CHAIN = tuple(DEFAULT_ITERATIONS)
"""The models, in the order in which each starts from the one before."""
MIN_PROBABILITY = 1e-6
"""What is less likely is not saved."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    model: str = "hmm"
    """The last of the chain."""
    iterations: Sequence[int] = ()
    """The iterations of each model of the chain; a model with none is left out. Without numbers:
    `DEFAULT_ITERATIONS`, and model 2 only where it is the last."""
    diagonal: bool = False
    """Whether model 2 has the diagonal of Dyer et al. 2013 in place of a table."""
    agreement: bool = True
    """Whether the directions learn from what both believe, from the HMM on."""
    alpha: float = 0.01
    """Prior count of every pair of words."""
    spelling: float = 1.0
    """Prior count of two words of equal spelling; less for words that are only alike; 0 for none."""
    max_words: int = 100
    """A pair with a longer sentence is not learnt from."""

    def __post_init__(self) -> None:
        if self.model not in CHAIN:
            raise ValueError(f"there is no model {self.model}: it is one of {', '.join(CHAIN)}")
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
            reason = "it is the model to be trained, and needs 1 or more"
            raise ValueError(f"0 iterations of {self.model}: {reason}")
        if self.alpha < 0 or self.spelling < 0:
            raise ValueError("a prior count is below 0: 0 is the least, and smooths nothing")
        if self.max_words < 1:
            raise ValueError(f"at most {self.max_words} words a sentence: 1 is the least")


@dataclass(frozen=True)
class Iteration:
    """What a pass over the corpus found."""

    model: str
    number: int
    """The number of the pass, from 1 on."""
    num_iterations: int
    perplexity: tuple[float, float]
    """The perplexities of target words given source words, and the reverse, as the pass began."""
    seconds: float
    """Since the training began."""

    def __str__(self) -> str:
        forward, backward = self.perplexity
        name = f"{self.model} {self.number}/{self.num_iterations}"
        return f"{name}: perplexity {forward:.2f}, backward {backward:.2f}"


def usable_pairs(pairs: Sequence[WordPair], max_words: int) -> list[WordPair]:
    """The pairs that can be learnt from. Raises ValueError where there is none."""
    usable = [pair for pair in pairs if 0 < min(map(len, pair)) <= max(map(len, pair)) <= max_words]
    if not usable:
        raise ValueError(
            f"none of the {len(pairs)} sentence pairs has words on both sides, and at most {max_words}: "
            "there is nothing to learn from"
        )
    return usable


def train_aligner(
    pairs: Sequence[WordPair],
    options: TrainingOptions,
    rule: WordRule,
    report: Callable[[Iteration], None] = lambda iteration: None,
) -> Aligner:
    """Trains on sentence pairs of normalized words. Raises ValueError where none can be learnt from."""
    began = time.monotonic()
    bitext, source, target = number_pairs(usable_pairs(pairs, options.max_words))
    sides = (source, target), (target, source)
    with ThreadPoolExecutor(2) as pool:
        directions = list(pool.map(Direction.of, (bitext, bitext.reversed())))
        priors = [_prior(one, *own, options.spelling) for one, own in zip(directions, sides, strict=True)]
        lexicons = [uniform_lexicon(direction.links) for direction in directions]
        models: list[Model] = []
        for name, num_iterations in zip(CHAIN, options.iterations, strict=False):
            if num_iterations == 0:
                continue
            kind = model_kind("ibm2-diagonal" if name == "ibm2" and options.diagonal else name)
            models = list(pool.map(kind.after, models or (None, None), directions, lexicons))
            for number in range(1, num_iterations + 1):
                forward, backward = pool.map(lambda m, *of_it: m.step(*of_it), models, directions, lexicons)
                models = [forward.next, backward.next]
                counts = forward.pair_P, backward.pair_P
                if options.agreement and name not in ("ibm1", "ibm2"):
                    links = directions[0].links, directions[1].links
                    counts = count_agreed(*links, forward.posterior_L, backward.posterior_L)
                lexicons = [
                    estimate_lexicon(direction.links, count_P, options.alpha, prior_P)
                    for direction, count_P, prior_P in zip(directions, counts, priors, strict=True)
                ]
                perplexity = [
                    exp(min(700.0, -step.log_likelihood / int(direction.links.target_size_S.sum())))
                    for step, direction in zip((forward, backward), directions, strict=True)
                ]
                seconds = time.monotonic() - began
                report(Iteration(name, number, num_iterations, (perplexity[0], perplexity[1]), seconds))
            if name == options.model:
                break
    both = [
        DirectedModel(model, Lexicon.of(direction.links, lexicon_P, MIN_PROBABILITY), *own)
        for model, direction, lexicon_P, own in zip(models, directions, lexicons, sides, strict=True)
    ]
    return Aligner(name=options.model, rule=rule, forward=both[0], backward=both[1])


def _prior(direction: Direction, source: Vocabulary, target: Vocabulary, strength: float) -> Numbers | None:
    """Prior counts of words that are spelt alike. [P]"""
    if strength == 0:
        return None
    alike_P = likeness(source.words, target.words, direction.links.source_P, direction.links.target_P)
    return np.where(alike_P >= ALIKE, strength * alike_P**2, 0.0)


@njit(cache=True, nogil=True)
def count_agreed(
    forward: Links, backward: Links, forward_L: Posteriors, backward_L: Posteriors
) -> tuple[Numbers, Numbers]:
    """Expected counts of word pairs from what both directions believe (Liang et al. 2006, section 3).

    A link's is the product of its posteriors in both. Each direction learns only what the other confirms; it
    is no expectation maximisation: the likelihood may fall. Words of NULL count as each direction has them.
    """
    forward_P, backward_P = np.zeros(len(forward.target_P)), np.zeros(len(backward.target_P))
    for sentence in range(len(forward.source_size_S)):
        num_sources, num_targets = forward.source_size_S[sentence], forward.target_size_S[sentence]
        for j in range(num_targets):
            null = forward.first_S[sentence] + j * (num_sources + 1)
            forward_P[forward.pair_L[null]] += forward_L[null]
            for i in range(num_sources):
                other = backward.first_S[sentence] + i * (num_targets + 1) + j + 1
                agreed = forward_L[null + i + 1] * backward_L[other]
                forward_P[forward.pair_L[null + i + 1]] += agreed
                backward_P[backward.pair_L[other]] += agreed
        for i in range(num_sources):
            null = backward.first_S[sentence] + i * (num_targets + 1)
            backward_P[backward.pair_L[null]] += backward_L[null]
    return forward_P, backward_P
