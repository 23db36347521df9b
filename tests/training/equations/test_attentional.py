"""The decoder of Luong et al. (2015) in plain loops, with all that it looks at.

Scores and windows of Luong et al.; heads of Vaswani et al. (2017), section 3.2.2; vectors of the structured
self-attention of Lin et al. (2017).

Shapes: T source positions, U target positions, E embedding width, H decoder units, M = 2 · encoder units,
C width of a context, A width of a head, N annotation vectors.
"""

import math
from collections.abc import Callable, Sequence
from typing import get_args

import numpy as np
import pytest
import torch
from tests.training.equations.plain_loops import (
    SOURCES,
    State,
    Vector,
    Weights,
    additive_score,
    assert_follows,
    bidirectional_encoder,
    linear,
    lstm,
    model_of,
    recurrent_layer,
    sigmoid,
    softmax,
    weighted_sum,
    weights_of,
)

from dragoman_training.data.batching import pad_ids
from dragoman_training.models import (
    Luong,
    LuongConfig,
    MultiHead,
    MultiHeadConfig,
    Structured,
    StructuredConfig,
)
from dragoman_training.models.attentional import AttentionalConfig, AttentionalLSTM
from dragoman_training.models.luong import Score

Look = Callable[[Vector, Sequence[Vector], int], tuple[Vector, Vector]]
"""The top state h_t [H], the encoder's states [T, M] and t, counted from 1, to a context [C] and weights."""


def follow(
    model: AttentionalLSTM, config: AttentionalConfig, source: list[int], target: list[int], look: Look
) -> tuple[list[Vector], list[Vector]]:
    """The attentional states h̃_t [U, E] (equation 5) and the weights of each."""
    weights, scale = weights_of(model), config.embedding_scale
    source_TE = [weights["source_embedding.weight"][token] * scale for token in source]
    states_TM, ahead, back = bidirectional_encoder("lstm", weights, config.encoder_layers, source_TE)
    layers = first_states(weights, config.decoder_layers, np.concatenate([ahead, back]))
    attentional_E = np.zeros(config.embedding_size)
    attentional_UE, looked = [], []
    for t, token in enumerate(target, 1):
        token_E = weights["target_embedding.weight"][token] * scale
        advance = advance_fed if config.input_feeding else advance_unfed
        layers = advance(weights, layers, token_E, attentional_E)
        top_H, _ = layers[-1]
        context_C, weights_T = look(top_H, states_TM, t)
        # Equation 5: h̃_t = tanh(W_c·[c_t; h_t]).
        attentional_E = np.tanh(linear(weights, "combine", np.concatenate([context_C, top_H])))
        attentional_UE.append(attentional_E)
        looked.append(weights_T)
    return attentional_UE, looked


def first_states(weights: Weights, num_layers: int, ends_M: Vector) -> list[State]:
    """A tanh layer leads from the encoder's last states to hidden and cell of each layer, in turn."""
    parts = np.split(np.tanh(linear(weights, "bridge", ends_M)), 2 * num_layers)
    return list(zip(parts[::2], parts[1::2], strict=True))


def advance_fed(weights: Weights, layers: list[State], token_E: Vector, fed_E: Vector) -> list[State]:
    """One step with input feeding: the first layer reads h̃_{t-1} beside the token (section 3.3)."""
    input_G = linear(weights, "token_input", token_E) + linear(weights, "feed_input", fed_E)
    new = []
    for number, state in enumerate(layers):
        if number:
            input_G = linear(weights, f"layer_inputs.{number - 1}", new[-1][0])
        new.append(lstm(input_G, linear(weights, f"cells.{number}.recurrent", state[0]), state))
    return new


def advance_unfed(weights: Weights, layers: list[State], token_E: Vector, _: Vector) -> list[State]:
    """One step of a decoder that reads the token alone."""
    new: list[State] = []
    for number, state in enumerate(layers):
        below = new[-1][0] if number else token_E
        new.append(recurrent_layer("lstm", weights, f"decoder.layers.{number}", [below], state)[1])
    return new


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


@pytest.mark.parametrize("heads", [1, 3])
def test_each_head_attends_in_projections_of_its_own(heads: int) -> None:
    config = MultiHeadConfig(
        embedding_size=6, encoder_units=4, decoder_units=7, attention_units=12, heads=heads
    )
    model = model_of(config)
    assert isinstance(model, MultiHead)
    query, key, value = (
        np.split(weights_of(model)[f"attention.{name}.weight"], heads) for name in ("query", "key", "value")
    )

    def look(state_H: Vector, states_TM: Sequence[Vector], t: int) -> tuple[Vector, Vector]:
        contexts_A, weights_T = [], np.zeros(len(states_TM))
        for head in range(heads):
            query_A = query[head] @ state_H
            # Equation 1 of each head's own projections.
            of_head_T = softmax([query_A @ (key[head] @ s) / math.sqrt(len(query_A)) for s in states_TM])
            contexts_A.append(weighted_sum(of_head_T, [value[head] @ s for s in states_TM]))
            weights_T += of_head_T / heads
        return np.concatenate(contexts_A), weights_T

    assert_follows(model, lambda *pair: follow(model, config, *pair, look))


STRUCTURED = StructuredConfig(
    embedding_size=6,
    encoder_units=4,
    decoder_units=7,
    annotations=3,
    annotation_units=5,
    redundancy_penalty=0.7,
)


def annotate(weights: Weights, states_TM: Sequence[Vector]) -> np.ndarray:
    """Equation 6: A = softmax(W_s2·tanh(W_s1·Hᵀ)) [N, T], each row over the positions."""
    hidden = [np.tanh(linear(weights, "annotation.hidden", state_M)) for state_M in states_TM]
    return np.array([softmax([row @ each for each in hidden]) for row in weights["annotation.queries"]])


def test_decoder_attends_over_the_annotation_vectors() -> None:
    model = model_of(STRUCTURED)
    assert isinstance(model, Structured)
    weights = weights_of(model)

    def look(state_H: Vector, states_TM: Sequence[Vector], t: int) -> tuple[Vector, Vector]:
        annotation_NT = annotate(weights, states_TM)
        vectors_NM = [weighted_sum(row_T, states_TM) for row_T in annotation_NT]  # Equation 7: M = A·H.
        weights_N = softmax([state_H @ linear(weights, "attention.key", vector) for vector in vectors_NM])
        return weighted_sum(weights_N, vectors_NM), weighted_sum(weights_N, annotation_NT)

    assert_follows(model, lambda *pair: follow(model, STRUCTURED, *pair, look))


@torch.inference_mode()
def test_penalty_is_the_squared_norm_of_what_rows_of_the_annotation_share() -> None:
    model = model_of(STRUCTURED)
    weights = weights_of(model)
    redundancies = []
    for source in SOURCES:
        source_TE = [weights["source_embedding.weight"][token] for token in source]
        states_TM, _, _ = bidirectional_encoder("lstm", weights, STRUCTURED.encoder_layers, source_TE)
        annotation_NT = annotate(weights, states_TM)
        # Equation 8: the squared Frobenius norm of A·Aᵀ - I.
        redundancies.append(
            sum(
                (annotation_NT[one] @ annotation_NT[other] - (one == other)) ** 2
                for one in range(STRUCTURED.annotations)
                for other in range(STRUCTURED.annotations)
            )
        )
    memory, _ = model.encode(pad_ids(SOURCES, 0), torch.tensor([len(source) for source in SOURCES]))
    penalty = model.penalty(memory)
    assert penalty is not None
    assert penalty.item() == pytest.approx(0.7 * sum(redundancies) / len(redundancies), rel=1e-5)
