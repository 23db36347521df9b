"""Luong's equations (2015), with every score, every window, and with input feeding or without.

Shapes: T source positions, H decoder units, M = 2 · encoder units.
"""

import math
from collections.abc import Sequence
from typing import get_args

import numpy as np
import pytest
from tests.training.equations.attentional_loops import follow
from tests.training.equations.plain_loops import (
    Vector,
    Weights,
    additive_score,
    linear,
    sigmoid,
    softmax,
    weighted_sum,
    weights_of,
)
from tests.training.equations.tiny_pairs import assert_follows, model_of

from dragoman_training.models import Luong, LuongConfig
from dragoman_training.models.luong import Score

REACH = 2
"""The paper's D of the local models here."""


def score(weights: Weights, name: Score, state_H: Vector, annotation_M: Vector) -> float:
    """The scores of section 3.1, and that of Vaswani et al. (2017), equation 1."""
    match name:
        case "dot":
            return state_H @ annotation_M
        case "scaled_dot":
            return state_H @ annotation_M / math.sqrt(len(annotation_M))
        case "general":
            return state_H @ linear(weights, "attention.key", annotation_M)
        case "concat":
            return additive_score(weights, "attention", state_H, annotation_M)


def centre(weights: Weights, attention: str, state_H: Vector, length: int, t: int) -> float:
    """The aligned position p_t, from 1 on: t itself, at most S (local-m), or predicted (equation 9)."""
    if attention == "local-m":
        return min(t, length)
    return length * sigmoid(weights["window.direction"] @ np.tanh(linear(weights, "window.hidden", state_H)))


def align(
    weights: Weights, config: LuongConfig, state_H: Vector, states_TM: Sequence[Vector], t: int
) -> Vector:
    """Where a state looks: a_t [T] of equation 7, for the local models within their windows alone."""
    scores_T = np.array([score(weights, config.score, state_H, annotation) for annotation in states_TM])
    if config.attention == "global":
        return softmax(scores_T)
    length = len(states_TM)
    p = centre(weights, config.attention, state_H, length, t)
    inside = [s for s in range(1, length + 1) if p - REACH <= s <= p + REACH]
    weights_T = np.zeros(length)
    for s, weight in zip(inside, softmax([scores_T[s - 1] for s in inside]), strict=True):
        # Equation 10, with a deviation of D/2.
        gaussian = math.exp(-((s - p) ** 2) / (2 * (REACH / 2) ** 2))
        weights_T[s - 1] = weight * (gaussian if config.attention == "local-p" else 1)
    return weights_T


@pytest.mark.parametrize("input_feeding", [True, False], ids=["fed", "unfed"])
@pytest.mark.parametrize("attention", ["global", "local-m", "local-p"])
@pytest.mark.parametrize("score", get_args(Score))
def test_decoder_follows_the_equations_of_luong(score: Score, attention: str, input_feeding: bool) -> None:
    config = LuongConfig(
        embedding_size=6,
        embedding_scale=4.0,
        encoder_units=4,
        decoder_units=8,
        score=score,
        attention=attention,  # type: ignore[arg-type]
        window=0 if attention == "global" else REACH,
        input_feeding=input_feeding,
    )
    model = model_of(config)
    assert isinstance(model, Luong)
    weights = weights_of(model)

    def look(state_H: Vector, states_TM: Sequence[Vector], t: int) -> tuple[Vector, Vector]:
        weights_T = align(weights, config, state_H, states_TM, t)
        return weighted_sum(weights_T, states_TM), weights_T

    assert_follows(model, lambda *pair: follow(model, config, *pair, look))
