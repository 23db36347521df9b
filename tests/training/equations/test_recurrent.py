"""Bahdanau (2015), the encoder-decoder without attention of Sutskever et al. (2014), and the
attention language model of Daniluk et al. (2017).

Shapes: T source positions, U target positions, E embedding width, H decoder units, M = 2 · encoder units.
"""

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch
from tests.training.equations.plain_loops import (
    CELLS,
    SOURCES,
    TARGETS,
    TOLERANCE,
    Cell,
    Vector,
    additive_score,
    assert_features,
    assert_follows,
    bidirectional_encoder,
    compute,
    linear,
    model_of,
    recurrent_layer,
    softmax,
    weighted_sum,
    weights_of,
)

from dragoman_training.models import (
    Bahdanau,
    BahdanauConfig,
    LanguageModel,
    LanguageModelConfig,
    Plain,
    PlainConfig,
)

BAHDANAU = BahdanauConfig(embedding_size=6, encoder_units=5, decoder_units=7, attention_units=4)


def follow_bahdanau(
    model: Bahdanau, source: list[int], target: list[int]
) -> tuple[list[Vector], list[Vector]]:
    """The readouts [U, E] and the weights over the source [U, T]."""
    weights, cell, scale = weights_of(model), model.config.cell, math.sqrt(model.config.embedding_size)
    source_TE = [weights["source_embedding.weight"][token] * scale for token in source]
    annotations_TM, _, back_H = bidirectional_encoder(cell, weights, model.config.encoder_layers, source_TE)
    # Appendix A.2.2: s_0 = tanh(W_s·←h_1).
    state = np.tanh(linear(weights, "bridge", back_H)), np.zeros(model.config.decoder_units)
    readouts, looked = [], []
    for token in target:
        y_E = weights["target_embedding.weight"][token] * scale
        # Equation 6 of the previous state, and equation 5.
        weights_T = softmax([additive_score(weights, "attention", state[0], h) for h in annotations_TM])
        context_M = weighted_sum(weights_T, annotations_TM)
        # s_i = f(s_{i-1}, y_{i-1}, c_i).
        input_G = linear(weights, "token_input", y_E) + linear(weights, "context_input", context_M)
        state = CELLS[cell](input_G, linear(weights, "cell.recurrent", state[0]), state)
        # Appendix A.2.2: t̃_i, and of each pair of its units the larger.
        pairs = linear(weights, "token_readout", y_E) + linear(
            weights, "row_readout", np.concatenate([context_M, state[0]])
        )
        readouts.append(np.array([max(pairs[2 * i], pairs[2 * i + 1]) for i in range(len(pairs) // 2)]))
        looked.append(weights_T)
    return readouts, looked


@pytest.mark.parametrize("encoder_layers", [1, 2])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_decoder_follows_the_equations_of_bahdanau(cell: Literal["gru", "lstm"], encoder_layers: int) -> None:
    model = model_of(replace(BAHDANAU, cell=cell, encoder_layers=encoder_layers))
    assert isinstance(model, Bahdanau)
    assert_follows(model, lambda *pair: follow_bahdanau(model, *pair))


def test_logits_are_products_with_the_tied_embedding_but_for_what_is_never_produced() -> None:
    model = model_of(BAHDANAU)
    weights = weights_of(model)
    readout_E = np.linspace(-1, 1, BAHDANAU.embedding_size)
    with torch.no_grad():
        found_V = model.output(torch.tensor(readout_E, dtype=torch.float32)).numpy()
    expected_V = [
        sum(readout_E * row_E) + bias
        for row_E, bias in zip(weights["target_embedding.weight"], weights["output.bias"], strict=True)
    ]
    np.testing.assert_allclose(found_V[2:], expected_V[2:], rtol=0, atol=TOLERANCE)
    assert (found_V[:2] < -9_000).all()


def follow_plain(model: Plain, source: list[int], target: list[int]) -> list[Vector]:
    """The readouts [U, E]: each layer of the decoder begins where the encoder's ends."""
    weights, config = weights_of(model), model.config
    if config.reverse_source:
        # Section 3.3: the words, not the end of the sentence.
        source = [*source[-2::-1], source[-1]]
    states = [weights["source_embedding.weight"][token] * config.embedding_scale for token in source]
    outputs = [weights["target_embedding.weight"][token] * config.embedding_scale for token in target]
    for layer in range(config.layers):
        states, end = recurrent_layer(config.cell, weights, f"encoder.layers.{layer}.rnn", states)
        outputs, _ = recurrent_layer(config.cell, weights, f"decoder.layers.{layer}", outputs, end)
    return [linear(weights, "readout", top) for top in outputs]


@pytest.mark.parametrize("reverse_source", [True, False], ids=["reversed", "as written"])
@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn", "rnn-relu"])
def test_decoder_begins_where_the_encoder_ends(reverse_source: bool, cell: Cell) -> None:
    config = PlainConfig(
        cell=cell, embedding_size=6, embedding_scale=2.0, layers=2, units=5, reverse_source=reverse_source
    )
    model = model_of(config)
    assert isinstance(model, Plain)
    found = compute(model)
    assert_features(found, [follow_plain(model, *pair) for pair in zip(SOURCES, TARGETS, strict=True)])
    assert not found.attention_SUT.any()


def follow_language_model(model: LanguageModel, text: list[int]) -> list[Vector]:
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
    assert_features(found, [follow_language_model(model, text) for text in TARGETS])
    assert not found.attention_SUT.any()
