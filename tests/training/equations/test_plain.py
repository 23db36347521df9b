"""The encoder-decoder without attention (Sutskever et al. 2014), with its source reversed or not.

Shapes: T source positions, U target positions, E embedding width.
"""

import pytest
from tests.training.equations.plain_loops import Cell, Vector, linear, recurrent_layer, weights_of
from tests.training.equations.tiny_pairs import SOURCES, TARGETS, assert_features, compute, model_of

from dragoman_training.models import Plain, PlainConfig


def follow(model: Plain, source: list[int], target: list[int]) -> list[Vector]:
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
    assert_features(found, [follow(model, *pair) for pair in zip(SOURCES, TARGETS, strict=True)])
    assert not found.attention_SUT.any()
