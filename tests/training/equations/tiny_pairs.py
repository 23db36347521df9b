"""Two sentence pairs of different length, and what a model computes for them together in a batch.

Shapes: S sentences, U target positions, T source positions, E width of features.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from dragoman_training.data.batching import pad_ids
from dragoman_training.models import ModelConfig, Seq2Seq, VocabularyShape, build_model

SOURCES = [[3, 4, 5, 6, 2], [7, 8, 2]]
TARGETS = [[1, 4, 5, 6], [1, 9, 10, 11]]
"""What the decoder reads, bos first."""
TOLERANCE = 2e-5
"""Between the modules' float32 and the loops' float64."""


@dataclass(frozen=True, kw_only=True)
class Computed:
    """What a model made of the pairs."""

    decoded_SUE: np.ndarray
    """Features of the whole target at once, as in training."""
    stepped_SUE: np.ndarray
    """Features step by step, as in translation."""
    attention_SUT: np.ndarray
    """What the steps looked at."""


def model_of(config: ModelConfig) -> Seq2Seq:
    """A model without dropout whose weights, biases too, are random and so large that all of them matter."""
    torch.manual_seed(0)
    vocabulary = VocabularyShape(source_size=20, target_size=23, shared=False, bos=1, never_produced=(0, 1))
    model = build_model(config, vocabulary).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=1.0)
    return model


@torch.inference_mode()
def compute(model: Seq2Seq, sources: list[list[int]] = SOURCES) -> Computed:
    """Decodes the pairs, and steps through them."""
    source_ST = pad_ids(sources, 0)
    length_S = torch.tensor([len(source) for source in sources])
    target_SU = torch.tensor(TARGETS)
    memory, state = model.encode(source_ST, length_S)
    decoded_SUE = model.decode(memory, state, target_SU)
    stepped, attention = [], []
    for token_S1 in target_SU.split(1, dim=1):
        features_SE, attention_S1T, state = model.step(token_S1, memory, state)
        stepped.append(features_SE)
        attention.append(attention_S1T)
    return Computed(
        decoded_SUE=decoded_SUE.numpy(),
        stepped_SUE=torch.stack(stepped, dim=1).numpy(),
        attention_SUT=torch.cat(attention, dim=1).numpy(),
    )


def assert_features(found: Computed, expected_SUE: list[list[np.ndarray]]) -> None:
    """Both ways to decode give the features that the equations do."""
    np.testing.assert_allclose(found.decoded_SUE, expected_SUE, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(found.stepped_SUE, expected_SUE, rtol=TOLERANCE, atol=TOLERANCE)


def assert_attention(found: Computed, expected_SUT: list[list[np.ndarray]]) -> None:
    """Steps look where the equations do, and where those do not, at padding too, not in the least."""
    for found_UT, expected_UT in zip(found.attention_SUT, expected_SUT, strict=True):
        length = len(expected_UT[0])
        np.testing.assert_allclose(found_UT[:, :length], expected_UT, rtol=0, atol=TOLERANCE)
        assert not found_UT[:, :length][np.equal(expected_UT, 0)].any()
        assert not found_UT[:, length:].any()


def assert_follows(
    model: Seq2Seq, follow: Callable[[list[int], list[int]], tuple[list[np.ndarray], list[np.ndarray]]]
) -> None:
    """Features and attention are those that plain loops give for each pair."""
    found = compute(model)
    features, attention = zip(*map(follow, SOURCES, TARGETS), strict=True)
    assert_features(found, list(features))
    assert_attention(found, list(attention))
