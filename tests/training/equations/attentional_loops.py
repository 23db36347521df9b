"""The decoder of Luong et al. (2015) in plain loops; a family says what it looks at.

Shapes: T source positions, U target positions, E embedding width, H decoder units, M = 2 · encoder units,
C width of a context.
"""

from collections.abc import Callable, Sequence

import numpy as np
from tests.training.equations.plain_loops import (
    State,
    Vector,
    Weights,
    bidirectional_encoder,
    linear,
    lstm,
    recurrent_layer,
    weights_of,
)

from dragoman_training.models.attentional import AttentionalConfig, AttentionalLSTM

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
