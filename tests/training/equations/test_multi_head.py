"""Attention with several heads (Vaswani et al. 2017, section 3.2.2) in Luong's decoder.

Shapes: T source positions, H decoder units, M = 2 · encoder units, A width of a head.
"""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from tests.training.equations.attentional_loops import follow
from tests.training.equations.plain_loops import Vector, softmax, weighted_sum, weights_of
from tests.training.equations.tiny_pairs import assert_follows, model_of

from dragoman_training.models import MultiHead, MultiHeadConfig


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
