"""The attention language model of Daniluk et al. (2017), section 2.1.

Shapes: U positions, E embedding width, H units.
"""

import numpy as np
import pytest
from tests.training.equations.plain_loops import (
    Vector,
    additive_score,
    linear,
    recurrent_layer,
    softmax,
    weighted_sum,
    weights_of,
)
from tests.training.equations.tiny_pairs import TARGETS, assert_features, compute, model_of

from dragoman_training.models import LanguageModel, LanguageModelConfig


def follow(model: LanguageModel, text: list[int]) -> list[Vector]:
    """The features h* [U, E] of each token; a state sees the `span` states before it, or all if that is 0."""
    weights, config = weights_of(model), model.config
    states_UH = [weights["embedding.weight"][token] for token in text]
    for layer in range(config.layers):
        states_UH, _ = recurrent_layer("lstm", weights, f"decoder.layers.{layer}", states_UH)
    # Before the first state stands what the LSTM begins with.
    states_UH = [np.zeros(config.units), *states_UH]
    features = []
    for now in range(1, len(states_UH)):
        past_NH = states_UH[max(0, now - config.span) if config.span else 0 : now]
        # α = softmax(w·tanh(W^Y·Y + W^h·h)), r = Y·α, h* = tanh(W^r·r + W^x·h).
        weights_N = softmax(
            [additive_score(weights, "attention", states_UH[now], state_H) for state_H in past_NH]
        )
        joined = np.concatenate([weighted_sum(weights_N, past_NH), states_UH[now]])
        features.append(np.tanh(linear(weights, "combine", joined)))
    return features


@pytest.mark.parametrize("span", [0, 1, 2])
def test_each_state_attends_over_those_before_it(span: int) -> None:
    model = model_of(LanguageModelConfig(embedding_size=6, layers=2, units=5, attention_units=4, span=span))
    assert isinstance(model, LanguageModel)
    # Of sources that are empty but for their end.
    found = compute(model, [[2], [2]])
    assert_features(found, [follow(model, text) for text in TARGETS])
    assert not found.attention_SUT.any()
