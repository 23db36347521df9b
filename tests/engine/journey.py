"""Courses of joins, leaves and steps for batches that stay on the device."""

from typing import Any

import numpy as np
from tests.engine.exported import VOCABULARY

from dragoman_server.engine import StepInput, StepOutput
from dragoman_server.engine.onnx.decoder import OnnxDecoder


class Journey:
    """A random course of joins, leaves and steps, through which several batches are led alike."""

    def __init__(self, seed: int, beam_size: int) -> None:
        self._random = np.random.default_rng(seed)
        self._beam_size = beam_size
        self._num_sentences = 0
        self._last: StepOutput | None = None

    def regroup(self, decoders: list[OnnxDecoder], batches: list[Any]) -> None:
        """Some leave, and up to three groups join."""
        stays = self._random.random(self._num_sentences) < self._random.choice([0.3, 0.8, 1.0])
        num_groups = self._random.integers(0 if stays.any() else 1, 4)
        groups = [
            [
                [*self._random.integers(4, VOCABULARY, self._random.integers(0, 20)).tolist(), 3]
                for _ in range(self._random.integers(1, 4))
            ]
            for _ in range(num_groups)
        ]
        num_joined = sum(map(len, groups))
        present = [*np.flatnonzero(stays), *(self._num_sentences + np.arange(num_joined))]
        end = min(len(present), self._num_sentences)
        others = iter([place for place in present if place >= end])
        origin_S = np.array(
            [place if place < end and stays[place] else next(others) for place in range(len(present))],
            np.int64,
        )
        positions = int(self._random.choice([24, 32]))
        for decoder, batch in zip(decoders, batches, strict=True):
            batch.regroup(origin_S, [decoder.encode(group, self._beam_size) for group in groups], positions)
        K, S = self._beam_size, len(origin_S)
        parent_SK = np.zeros((self._num_sentences, K), np.int64)
        score_SK = np.zeros((self._num_sentences, K), np.float32)
        if self._last is not None:
            row_SK = self._last.top_index_SC[:, :K] // VOCABULARY
            parent_SK = row_SK + np.arange(self._num_sentences)[:, None] * K
            score_SK = self._last.top_score_SC[:, :K]
        first_SK = np.repeat(self._num_sentences * K + np.arange(num_joined)[:, None], K, axis=1)
        new_score_SK = np.where(np.arange(K) == 0, 0, -np.inf).astype(np.float32) * np.ones(
            (num_joined, 1), np.float32
        )
        self._parent_SK = np.concatenate([parent_SK, first_SK])[origin_S]
        self._score_SK = np.concatenate([score_SK, new_score_SK])[origin_S]
        self._num_sentences = S

    def step(self, batches: list[Any]) -> list[StepOutput]:
        """One token for all; some sentences are forced to one of any kind."""
        S, K = self._parent_SK.shape
        forced_SK = np.zeros((S, K), np.int64)
        if self._random.random() < 0.3:
            forced_SK[self._random.integers(0, S), 0] = self._random.integers(4, VOCABULARY)
        rows = StepInput(
            token_SK=self._random.integers(4, VOCABULARY, (S, K)),
            parent_SK=self._parent_SK,
            score_SK=self._score_SK,
            forced_SK=forced_SK,
            wants_attention=bool(self._random.random() < 0.5),
        )
        outputs = [batch.step(rows) for batch in batches]
        self._last = outputs[0]
        self._parent_SK = outputs[0].top_index_SC[:, :K] // VOCABULARY + np.arange(S)[:, None] * K
        self._score_SK = outputs[0].top_score_SC[:, :K].copy()
        return outputs


def assert_same(found: StepOutput, expected: StepOutput, tolerance: float) -> None:
    is_real = expected.top_score_SC > -np.inf
    assert found.top_score_SC.shape == expected.top_score_SC.shape
    pairs = [
        (found.top_score_SC, expected.top_score_SC),
        (found.forced_score_SK, expected.forced_score_SK),
        (found.attention_SKT, expected.attention_SKT),
    ]
    if not tolerance:
        np.testing.assert_array_equal(found.top_index_SC[is_real], expected.top_index_SC[is_real])
    for one, other in pairs:
        if other is None:
            assert one is None
        else:
            np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)
