"""Equations that families share, in plain loops: written from the papers, one vector at a time, in float64.

They read a module's weights by name and nothing else of it. The gates lie one behind the other in a weight
matrix, as PyTorch orders them. Models are tried on two sentence pairs of different length, in a batch.

Shapes: S sentences, T source positions, U target positions, D width of an input, E width of features,
H hidden units, M = 2 · H, G = gates · H.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import nn

from dragoman_training.data.batching import pad_ids
from dragoman_training.models import ModelConfig, Seq2Seq, VocabularyShape, build_model

Vector = np.ndarray
Weights = dict[str, np.ndarray]
State = tuple[Vector, Vector]
"""Hidden state and cell [H]; a GRU hands its cell on as it is."""


def weights_of(module: nn.Module) -> Weights:
    """A module's parameters by their names."""
    return {name: value.double().numpy() for name, value in module.state_dict().items()}


def linear(weights: Weights, name: str, x_D: Vector) -> Vector:
    """W·x + b, or W·x where the layer has no bias."""
    return weights[f"{name}.weight"] @ x_D + weights.get(f"{name}.bias", 0.0)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """The logistic function σ, 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def softmax(scores_T: Sequence[float] | Vector) -> Vector:
    """Weights that add up to one (Bahdanau et al. 2015, equation 6; Luong et al. 2015, equation 7)."""
    exponentials = [math.exp(score - max(scores_T)) for score in scores_T]
    return np.array([exponential / sum(exponentials) for exponential in exponentials])


def weighted_sum(weights_T: Vector, values_TD: Sequence[Vector]) -> Vector:
    """The context c, the sum of α_j·h_j (Bahdanau et al. 2015, equation 5)."""
    return sum(weight * value for weight, value in zip(weights_T, values_TD, strict=True))


def additive_score(weights: Weights, name: str, query_D: Vector, key_D: Vector) -> float:
    """v·tanh(W·s + U·h), with a bias in it (Bahdanau et al. 2015, appendix A.1.2)."""
    hidden = np.tanh(linear(weights, f"{name}.query", query_D) + linear(weights, f"{name}.key", key_D))
    return linear(weights, f"{name}.energy", hidden).item()


def gru(input_G: Vector, recurrent_G: Vector, state: State) -> State:
    """A gated recurrent unit from its projected input and state (Cho et al. 2014, equations 5 to 8).

    Equation 8 with the reset gate behind the product, r ⊙ (U·h), as cuDNN has it, not U·(r ⊙ h).
    """
    hidden, cell = state
    input_r, input_z, input_n = np.split(input_G, 3)
    recurrent_r, recurrent_z, recurrent_n = np.split(recurrent_G, 3)
    reset = sigmoid(input_r + recurrent_r)
    update = sigmoid(input_z + recurrent_z)
    candidate = np.tanh(input_n + reset * recurrent_n)
    return update * hidden + (1 - update) * candidate, cell


def lstm(input_G: Vector, recurrent_G: Vector, state: State) -> State:
    """A long short-term memory from its projected input and state (Zaremba et al. 2014, section 3.1)."""
    _, cell = state
    i, f, g, o = np.split(input_G + recurrent_G, 4)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def simple(input_G: Vector, recurrent_G: Vector, state: State) -> State:
    """The network of Elman (1990): all of the last state comes in again."""
    return np.tanh(input_G + recurrent_G), state[1]


def simple_relu(input_G: Vector, recurrent_G: Vector, state: State) -> State:
    """The same with max(0, x) (Le et al. 2015)."""
    return np.maximum(0, input_G + recurrent_G), state[1]


Cell = Literal["gru", "lstm", "rnn", "rnn-relu"]
CELLS: dict[Cell, Callable[[Vector, Vector, State], State]] = {
    "gru": gru,
    "lstm": lstm,
    "rnn": simple,
    "rnn-relu": simple_relu,
}


def recurrent_layer(
    cell: Cell, weights: Weights, name: str, inputs_TD: Sequence[Vector], state: State | None = None
) -> tuple[list[Vector], State]:
    """One of PyTorch's recurrent layers over a sentence: hidden states [T, H] and the last state.

    It begins with zeros where no state is given.
    """
    hidden_size = weights[f"{name}.weight_hh_l0"].shape[1]
    state = (np.zeros(hidden_size), np.zeros(hidden_size)) if state is None else state
    hiddens_TH = []
    for x_D in inputs_TD:
        input_G = weights[f"{name}.weight_ih_l0"] @ x_D + weights[f"{name}.bias_ih_l0"]
        recurrent_G = weights[f"{name}.weight_hh_l0"] @ state[0] + weights[f"{name}.bias_hh_l0"]
        state = CELLS[cell](input_G, recurrent_G, state)
        hiddens_TH.append(state[0])
    return hiddens_TH, state


def bidirectional_encoder(
    cell: Cell, weights: Weights, num_layers: int, inputs_TD: Sequence[Vector]
) -> tuple[list[Vector], Vector, Vector]:
    """Annotations h_j = [→h_j; ←h_j] of layers on layers (Bahdanau et al. 2015, section 3.2 and A.2.1).

    Returns those of the top layer [T, M], its last forward state →h_T and its last backward state ←h_1.
    """
    states_TM = list(inputs_TD)
    for layer in range(num_layers):
        name = f"encoder.layers.{layer}"
        ahead_TH, _ = recurrent_layer(cell, weights, f"{name}.forward_rnn", states_TM)
        back_TH, _ = recurrent_layer(cell, weights, f"{name}.backward_rnn", states_TM[::-1])
        back_TH.reverse()
        states_TM = [np.concatenate(both) for both in zip(ahead_TH, back_TH, strict=True)]
    return states_TM, ahead_TH[-1], back_TH[0]


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
