"""What every reference is: a model's encoder and decoder step in NumPy, plain and in float64; and its steps,
behind the beam search or along given tokens.

Owns products, with or without rounding, and what families share. Must know neither ONNX nor PyTorch.

Shapes: S sentences, K beam, R = S·K rows, T source positions, V target vocabulary, D a width,
C = 2K candidates.
"""

import copy
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Protocol, Self

import numpy as np
from dragoman_bundle.search import Candidates, Scores, Sentences, pad_rows
from numpy.typing import NDArray

from dragoman_export.reference.imported import Architecture, Imported, Name

Array = NDArray[np.float64]
Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

OUT_OF_REACH = -1e4
"""Added to the logits of tokens that are never produced, and to the scores of those that are barred."""
WEIGHT_CODES, ROW_CODES = 63, 127
"""Codes on either side of 0 that int8 graphs have for weights and for rows."""


class ReferenceModel(Protocol):
    """A model that is stepped by no graph: an encoder, and a decoder that takes one token at a time.

    Memory and state are named as in the graphs, without "memory." and "state." before the names.
    """

    bos: int
    vocabulary_size: int

    @abstractmethod
    def encode(self, source_ST: Ids, source_length_S: Ids) -> tuple[Arrays, Arrays]:
        """Memory and first state, one row a sentence."""

    @abstractmethod
    def step(self, token_SK: Ids, memory: Arrays, state: Arrays) -> tuple[Array, Array, Arrays]:
        """Advances every row by a token: logits [R, V], attention [S, K, T] and the new state.

        `state` has S·K rows, already those that the rows continue.
        """

    @abstractmethod
    def token_scores(self, logits_RV: Array) -> Array:
        """Log-probabilities of the next token, of which barred ones are out of reach: [R, V]."""

    @abstractmethod
    def rounded(self) -> Self:
        """The same, with matrices and the rows that are multiplied rounded as int8 graphs round them."""


class Reference(ReferenceModel):
    """A model from elsewhere, of either architecture."""

    architecture: Architecture
    weights: Mapping[str, NDArray[Any]]

    def __init__(self, imported: Imported) -> None:
        """Multiplies by matrices in float32, as the weights are: they are not copied."""
        self.imported, self.architecture, self.weights = imported, imported.architecture, imported.weights
        self.bos = imported.architecture.bos
        self.vocabulary_size = len(imported.weights[Name.OUTPUT])
        self._rounds = False

    def rounded(self) -> Self:
        rounded = copy.copy(self)
        rounded._rounds = True
        # What has several names is rounded once.
        changed: dict[int, NDArray[Any]] = {}
        for name, value in self.weights.items():
            if id(value) not in changed:
                stays = value.ndim != 2 or name.endswith("table_LD") or name in self.imported.stored
                changed[id(value)] = value if stays else _rounded(value, WEIGHT_CODES)
        rounded.weights = {name: changed[id(value)] for name, value in self.weights.items()}
        return rounded

    def product(self, rows: Array, name: str) -> Array:
        """Rows times a matrix of the weights: [..., D] -> [..., its outputs]."""
        return self._multiply(rows, name).astype(np.float64, copy=False)

    def _multiply(self, rows: Array, name: str) -> NDArray[Any]:
        """The same in the numbers that are multiplied: what is as wide as a vocabulary is not copied."""
        if self._rounds:
            step = self.imported.steps.get(name)
            if step is None:
                rows = _rounded(rows, ROW_CODES)
            else:
                rows = np.clip(np.rint(rows / step), -ROW_CODES, ROW_CODES) * step
        return rows.astype(np.float32, copy=False) @ self.weights[name].T

    def linear(self, rows: Array, name: str) -> Array:
        """The same with the bias that stands beside it."""
        return self.product(rows, f"{name}.weight") + self.weights[f"{name}.bias"]

    def logits(self, features: Array) -> Array:
        """What the output layer makes of features."""
        logits = self._multiply(features, Name.OUTPUT)
        logits += self.weights[Name.BIAS]
        logits[..., list(self.architecture.never_produced)] += OUT_OF_REACH
        return logits

    def token_scores(self, logits_RV: Array) -> Array:
        scores: Array = logits_RV - logits_RV.max(axis=-1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=-1, keepdims=True, dtype=np.float64))
        scores[..., list(self.architecture.barred)] += OUT_OF_REACH
        return scores

    def norm(self, x: Array, name: str) -> Array:
        """Layer normalisation (Ba et al. 2016); one without a bias adds none."""
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = np.square(centred).mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(variance + self.architecture.norm_epsilon)
        return scaled * self.weights[f"{name}.weight"] + self.weights.get(f"{name}.bias", 0.0)


def _rounded(rows: NDArray[Any], largest_code: int) -> NDArray[Any]:
    step = np.maximum(np.abs(rows).max(axis=-1, keepdims=True), 1e-30) / largest_code
    return np.rint(rows / step) * step


def source_mask(source_ST: Ids, source_length_S: Ids) -> Array:
    """1.0 at source positions, 0.0 at padding: [S, T]."""
    return (np.arange(source_ST.shape[1]) < source_length_S[:, None]).astype(np.float64)


def masked_softmax(scores: Array, mask: Array) -> Array:
    """Softmax over the last axis of what is not masked."""
    scores = np.where(mask > 0, scores, -np.inf)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def sigmoid(x: Array) -> Array:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


class ReferenceStepper:
    """Steps a reference."""

    def __init__(self, reference: ReferenceModel, *, source_pad_id: int, eos_id: int) -> None:
        self._reference = reference
        self._source_pad_id = source_pad_id
        self.bos_id = reference.bos
        self.eos_id = eos_id
        self.vocabulary_size = reference.vocabulary_size

    def encode(self, sources: Sentences) -> tuple[Arrays, Arrays]:
        """Memory and first state of sentences."""
        length_S = np.array([len(source) for source in sources], np.int64)
        return self._reference.encode(pad_rows(sources, self._source_pad_id), length_S)

    def step(
        self, context: tuple[Arrays, Arrays], token_SK: Ids, parent_SK: Ids, score_SK: Scores
    ) -> tuple[Candidates, tuple[Arrays, Arrays]]:
        """Advances every row and returns each sentence's 2K best continuations."""
        memory, state = context
        sentences, beam = token_SK.shape
        state = {name: value[parent_SK.reshape(-1)] for name, value in state.items()}
        logits_RV, _, state = self._reference.step(token_SK, memory, state)
        scores_SX = (self._reference.token_scores(logits_RV) + score_SK.reshape(-1, 1)).reshape(sentences, -1)
        best_SC = np.argpartition(scores_SX, -2 * beam, axis=1)[:, -2 * beam :]
        # Of equal ones the first goes first.
        best_SC.sort(axis=1)
        order_SC = np.argsort(-np.take_along_axis(scores_SX, best_SC, axis=1), axis=1, kind="stable")
        index_SC = np.take_along_axis(best_SC, order_SC, axis=1)
        score_SC = np.take_along_axis(scores_SX, index_SC, axis=1)
        return Candidates(score_SC=score_SC.astype(np.float32), index_SC=index_SC), (memory, state)

    def select(self, context: tuple[Arrays, Arrays], sentences: Ids) -> tuple[Arrays, Arrays]:
        """The context of some of its sentences."""
        memory, state = context
        return {name: value[sentences] for name, value in memory.items()}, state


class ReferenceSteps:
    """A reference, from the beginning of sentences."""

    def __init__(self, reference: ReferenceModel, sources: Sentences, pad_id: int) -> None:
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
