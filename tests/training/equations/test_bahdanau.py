"""Bahdanau's equations (2015), with either cell.

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
    Vector,
    additive_score,
    bidirectional_encoder,
    linear,
    softmax,
    weighted_sum,
    weights_of,
)
from tests.training.equations.tiny_pairs import TOLERANCE, assert_follows, model_of

from dragoman_training.models import Bahdanau, BahdanauConfig

CONFIG = BahdanauConfig(embedding_size=6, encoder_units=5, decoder_units=7, attention_units=4)


def follow(model: Bahdanau, source: list[int], target: list[int]) -> tuple[list[Vector], list[Vector]]:
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
    model = model_of(replace(CONFIG, cell=cell, encoder_layers=encoder_layers))
    assert isinstance(model, Bahdanau)
    assert_follows(model, lambda *pair: follow(model, *pair))


def test_logits_are_products_with_the_tied_embedding_but_for_what_is_never_produced() -> None:
    model = model_of(CONFIG)
    weights = weights_of(model)
    readout_E = np.linspace(-1, 1, CONFIG.embedding_size)
    with torch.no_grad():
        found_V = model.output(torch.tensor(readout_E, dtype=torch.float32)).numpy()
    expected_V = [
        sum(readout_E * row_E) + bias
        for row_E, bias in zip(weights["target_embedding.weight"], weights["output.bias"], strict=True)
    ]
    np.testing.assert_allclose(found_V[2:], expected_V[2:], rtol=0, atol=TOLERANCE)
    assert (found_V[:2] < -9_000).all()
