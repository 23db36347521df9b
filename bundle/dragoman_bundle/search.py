"""Batched beam search over anything that can be stepped.

The reference that every other decoder of a model is held against: plain, and the same for PyTorch and for
exported graphs. Shapes: S sentences, K beam, C = 2K candidates, T source positions, U tokens so far.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman_bundle.decoding import DecodingDefaults

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]
Sentences = Sequence[Sequence[int]]
"""Ids of tokens, for each sentence."""


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """What one step offers for each sentence, best first."""

    score_SC: Scores
    """Running log-probability."""
    index_SC: Ids
    """Row within the sentence · vocabulary size + token."""


class Stepper(Protocol):
    """A model behind the search. `context` is its own affair: memory and state of a batch."""

    vocabulary_size: int
    bos_id: int
    eos_id: int

    def encode(self, sources: Sentences) -> Any:
        """Encodes sentences, given as ids with eos, to a context with one state row a sentence."""

    def step(self, context: Any, token_SK: Ids, parent_SK: Ids, score_SK: Scores) -> tuple[Candidates, Any]:
        """Advances every row; `parent_SK` are the rows of the context's state that they continue."""

    def select(self, context: Any, sentences: Ids) -> Any:
        """The context's memory for some of its sentences; state rows stay."""


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """One translation that the search found."""

    tokens: tuple[int, ...]
    """Token ids without eos."""
    score: float
    """Length-normalised log-probability, what hypotheses are ranked by."""
    log_probability: float
    """Natural log of its probability."""
    ended: bool
    """Whether the model ended it, rather than the limit."""


def pad_rows(ids: Sentences, pad_id: int) -> Ids:
    """Rows of ids, padded on the right to the longest."""
    padded = np.full((len(ids), max(map(len, ids))), pad_id, np.int64)
    for row, own in zip(padded, ids, strict=True):
        row[: len(own)] = own
    return padded


def length_penalty(num_tokens: int, alpha: float) -> float:
    """What a log-probability is divided by (Wu et al. 2016, equation 14); `num_tokens` counts eos."""
    return float(((5 + num_tokens) / 6) ** alpha)


def beam_search(stepper: Stepper, sources: Sentences, decoding: DecodingDefaults) -> list[list[Hypothesis]]:
    """The hypotheses of each sentence, best first, `beam_size` of them.

    `sources` are ids with eos. A candidate that ends among the best K finishes a hypothesis; a sentence is
    done when K have finished or its output limit is reached.
    """
    beam = decoding.beam_size
    limits = np.array([decoding.output_limit(len(source)) for source in sources])
    finished: list[list[Hypothesis]] = [[] for _ in sources]
    alive = np.arange(len(sources))  # the sentences that still run, by their place in `sources`
    context = stepper.encode(sources)
    token_SK = np.full((len(sources), beam), stepper.bos_id, dtype=np.int64)
    parent_SK = np.repeat(alive[:, None], beam, axis=1)
    score_SK = np.full((len(sources), beam), -np.inf, dtype=np.float32)
    score_SK[:, 0] = 0.0
    history_SKU = np.empty((len(sources), beam, 0), dtype=np.int64)

    def finish(index: "np.integer[Any]", rows: Ids, log_probability: float, *, ended: bool) -> None:
        finished[alive[index]].append(
            Hypothesis(
                tokens=tuple(rows.tolist()),
                score=log_probability / penalty,
                log_probability=log_probability,
                ended=ended,
            )
        )

    while len(alive):
        candidates, context = stepper.step(context, token_SK, parent_SK, score_SK)
        row_SC, token_SC = np.divmod(candidates.index_SC, stepper.vocabulary_size)
        ends_SC = token_SC == stepper.eos_id
        length = history_SKU.shape[2] + 1
        penalty = length_penalty(length, decoding.length_penalty)
        for index, rank in np.argwhere(ends_SC[:, :beam]):
            log_probability = float(candidates.score_SC[index, rank])
            if len(finished[alive[index]]) < beam and log_probability > -math.inf:
                finish(index, history_SKU[index, row_SC[index, rank]], log_probability, ended=True)

        kept_SK = np.argsort(ends_SC, axis=1, kind="stable")[:, :beam]
        row_SK = np.take_along_axis(row_SC, kept_SK, axis=1)
        token_SK = np.take_along_axis(token_SC, kept_SK, axis=1)
        score_SK = np.take_along_axis(candidates.score_SC, kept_SK, axis=1)
        history_SKU = np.take_along_axis(history_SKU, row_SK[:, :, None], axis=1)
        history_SKU = np.concatenate([history_SKU, token_SK[:, :, None]], axis=2)
        parent_SK = np.arange(len(alive))[:, None] * beam + row_SK

        for index in np.flatnonzero(limits[alive] <= length):
            for row in range(beam - len(finished[alive[index]])):
                finish(index, history_SKU[index, row], float(score_SK[index, row]), ended=False)
        running = np.flatnonzero([len(finished[sentence]) < beam for sentence in alive])
        if len(running) < len(alive):
            alive, history_SKU = alive[running], history_SKU[running]
            token_SK, parent_SK, score_SK = token_SK[running], parent_SK[running], score_SK[running]
            context = stepper.select(context, running)
    return [sorted(hypotheses, key=lambda hypothesis: -hypothesis.score) for hypotheses in finished]
