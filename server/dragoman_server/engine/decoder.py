"""The interface of a model to the engine: encode sentences, regroup a running batch, advance it by one token.

The arrays that a model keeps between steps stay opaque: they never leave the implementation. How far they are
padded both sides know: few shapes cost less than the padding does.

Shape suffixes: S sentences of the batch, K beam, C = 2K candidates, T source positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

EncodedT = TypeVar("EncodedT")
EncodedT_contra = TypeVar("EncodedT_contra", contravariant=True)


@dataclass(frozen=True, kw_only=True)
class StepInput:
    """The live rows of a batch before a step."""

    token_SK: IntArray
    """The newest token of each row."""
    parent_SK: IntArray
    """The row of the batch's state that each row continues."""
    score_SK: FloatArray
    """Running log-probability; -inf for a row that is not in use."""
    forced_SK: IntArray
    """A token whose score is wanted; 0 where none is."""
    wants_attention: bool
    """Whether `StepOutput.attention_SKT` is needed."""


@dataclass(frozen=True, kw_only=True)
class StepOutput:
    """The best continuations of every sentence of a batch."""

    top_score_SC: FloatArray
    """Running log-probabilities of the best candidates, descending."""
    top_index_SC: IntArray
    """row * target vocabulary + token, rows counted within the sentence."""
    forced_score_SK: FloatArray
    """Running log-probability after the forced token."""
    attention_SKT: FloatArray | None
    """Weights over the source positions, where they were wanted."""


class Batch(Protocol[EncodedT_contra]):
    """A running batch: the memory of its sentences and the state of its rows."""

    def regroup(self, origin_S: IntArray, joined: Sequence[EncodedT_contra], source_positions: int) -> None:
        """Lets sentences leave and join.

        Number the sentences of the batch and after them those of `joined` from 0 on: the new batch has, at
        place s, the sentence `origin_S[s]`. A sentence that stays keeps its place or comes from
        one beyond the new end. Memory is padded or trimmed to `source_positions`, T. The state keeps all its
        rows; those of `joined` follow, one a sentence.
        """

    def step(self, rows: StepInput) -> StepOutput:
        """Advances every row by one token. Afterwards the state has S * K rows, in the order of `rows`."""


class Decoder(Protocol[EncodedT]):
    """A model that decodes step by step."""

    source_vocabulary: int
    """Number of source token ids."""
    target_vocabulary: int
    """Number of target token ids."""
    bos: int
    """The target token id that every hypothesis starts from."""
    eos: int
    """The target token id that ends a hypothesis."""

    def encode(self, sources: Sequence[Sequence[int]], beam_size: int) -> EncodedT:
        """Encodes sentences of a beam size together; they are best of nearly the same length."""

    def open_batch(self, beam_size: int) -> Batch[EncodedT]:
        """An empty batch of sentences of that beam size."""

    def release_memory(self) -> None:
        """Gives back what large batches took. None is open; the next one takes what it needs anew."""


_POSITIONS = 8
_CANDIDATES = 64
# Below it a float product sums in another order.
_MIN_CANDIDATES = 128


def padded_positions(length: int) -> int:
    """Source positions of a batch whose longest sentence has this length: a multiple of eight."""
    return -(-length // _POSITIONS) * _POSITIONS


def padded_candidates(num_candidates: int) -> int:
    """Candidates that a batch is padded to: a multiple of 64, at least 128, so that sums run in one order."""
    return max(_MIN_CANDIDATES, -(-num_candidates // _CANDIDATES) * _CANDIDATES)


def worth_trimming(needed: int, current: int) -> bool:
    """Whether to trim, and so to copy, a batch's tensors of a `current` length to what is `needed`."""
    return needed * 4 <= current * 3


def padded_rows(count: int) -> int:
    """The number of rows or sentences after padding: of 1, 2, 3, 4, 6, 8, ... the least from `count`.

    Less than a third of it is padding. A GPU takes hardly longer for a few rows more, and a shape that it has
    not seen takes memory of its own.
    """
    power = 1 << (count - 1).bit_length()
    return power * 3 // 4 if count <= power * 3 // 4 else power
