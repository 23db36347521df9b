"""The structured self-attention of Lin et al. (2017), over whose vectors Luong's decoder attends.

Shapes: T source positions, N annotation vectors, H decoder units, M = 2 · encoder units.
"""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from tests.training.equations.attentional_loops import follow
from tests.training.equations.plain_loops import (
    Vector,
    Weights,
    bidirectional_encoder,
    linear,
    softmax,
    weighted_sum,
    weights_of,
)
from tests.training.equations.tiny_pairs import SOURCES, assert_follows, model_of

from dragoman_training.data.batching import pad_ids
from dragoman_training.models import Structured, StructuredConfig

CONFIG = StructuredConfig(
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
    model = model_of(CONFIG)
    assert isinstance(model, Structured)
    weights = weights_of(model)

    def look(state_H: Vector, states_TM: Sequence[Vector], t: int) -> tuple[Vector, Vector]:
        annotation_NT = annotate(weights, states_TM)
        vectors_NM = [weighted_sum(row_T, states_TM) for row_T in annotation_NT]  # Equation 7: M = A·H.
        weights_N = softmax([state_H @ linear(weights, "attention.key", vector) for vector in vectors_NM])
        return weighted_sum(weights_N, vectors_NM), weighted_sum(weights_N, annotation_NT)

    assert_follows(model, lambda *pair: follow(model, CONFIG, *pair, look))


@torch.inference_mode()
def test_penalty_is_the_squared_norm_of_what_rows_of_the_annotation_share() -> None:
    model = model_of(CONFIG)
    weights = weights_of(model)
    redundancies = []
    for source in SOURCES:
        source_TE = [weights["source_embedding.weight"][token] for token in source]
        states_TM, _, _ = bidirectional_encoder("lstm", weights, CONFIG.encoder_layers, source_TE)
        annotation_NT = annotate(weights, states_TM)
        # Equation 8: the squared Frobenius norm of A·Aᵀ - I.
        redundancies.append(
            sum(
                (annotation_NT[one] @ annotation_NT[other] - (one == other)) ** 2
                for one in range(CONFIG.annotations)
                for other in range(CONFIG.annotations)
            )
        )
    memory, _ = model.encode(pad_ids(SOURCES, 0), torch.tensor([len(source) for source in SOURCES]))
    penalty = model.penalty(memory)
    assert penalty is not None
    assert penalty.item() == pytest.approx(0.7 * sum(redundancies) / len(redundancies), rel=1e-5)
