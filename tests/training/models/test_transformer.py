"""What is the Transformer's own: a past of each row's own age, positions, and settings that must fit."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from dragoman_training.models import Transformer, TransformerConfig, VocabularyShape, build_model
from dragoman_training.models.layers.transformer_layers import ACTIVATIONS, Activation
from dragoman_training.recipe.settings import DataConfig, DecodingConfig, Recipe, RecipeError

CONFIG = TransformerConfig(width=12, heads=3, feed_forward=20, encoder_layers=1, decoder_layers=2)
VOCABULARY = VocabularyShape(source_size=40, target_size=30, shared=False, bos=2, never_produced=(0, 1, 2))


@pytest.fixture(params=["pre", "post"])
def model(request: pytest.FixtureRequest) -> Transformer:
    torch.manual_seed(3)
    model = build_model(replace(CONFIG, norm=request.param), VOCABULARY).eval()
    assert isinstance(model, Transformer)
    return model


def test_heads_that_do_not_divide_the_width_are_refused_with_a_number_that_does() -> None:
    with pytest.raises(ValueError, match=r"model\.heads is 5, .* model\.width, 256; 4 heads would be 64"):
        TransformerConfig(width=256, heads=5)


@pytest.mark.parametrize(
    ("data", "decoding", "key"),
    [
        ({"max_tokens": 50}, {}, r"data\.max_tokens makes sentences of 51"),
        ({}, {"max_source_tokens": 60}, r"decoding\.max_source_tokens makes sentences of 60"),
        ({}, {"max_output_tokens": 51}, r"decoding\.max_output_tokens makes sentences of 51"),
    ],
)
def test_sentences_longer_than_the_positions_are_refused(
    data: dict[str, int], decoding: dict[str, int], key: str
) -> None:
    with pytest.raises(RecipeError, match=rf"model\.max_positions is 50, but {key}"):
        Recipe(
            name="toy",
            data=DataConfig(
                source_language="de",
                target_language="en",
                train_tsv=("train.tsv",),
                valid_tsv=("valid.tsv",),
                **{"max_tokens": 40} | data,
            ),
            model=replace(CONFIG, max_positions=50),
            decoding=DecodingConfig(**{"max_source_tokens": 40, "max_output_tokens": 40} | decoding),
        )


def test_a_position_beyond_the_table_has_that_of_its_end() -> None:
    model = build_model(replace(CONFIG, max_positions=4), VOCABULARY)
    assert isinstance(model, Transformer)
    found = model.positions(torch.tensor([3, 4, 1000]))
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_rows_of_different_age_step_side_by_side_as_each_alone(model: Transformer) -> None:
    """One has lived through three steps, one through none: its past is all padding."""
    source_ST, length_S = torch.randint(4, 40, (2, 5)), torch.tensor([5, 4])
    target_SU = torch.randint(4, 30, (2, 8))
    with torch.inference_mode():
        expected = model(source_ST, length_S, target_SU)
        memory, state = model.encode(source_ST, length_S)
        old = {name: value[:1] for name, value in state.items()}
        first = {name: value[:1] for name, value in memory.items()}
        for place in range(3):
            _, _, old = model.step(target_SU[:1, place : place + 1], first, old)
        # What pads a past may be anything.
        noise = torch.full((1, *old["keys0"].shape[1:]), 50.0)
        together = {
            name: torch.cat([value, noise if value.ndim == 4 else state["age"][1:]])
            for name, value in old.items()
        }
        for place in range(5):
            token_S1 = torch.stack([target_SU[0, 3 + place], target_SU[1, place]]).unsqueeze(1)
            features_SD, _, together = model.step(token_S1, memory, together)
            torch.testing.assert_close(features_SD[0], expected[0, 3 + place], rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(features_SD[1], expected[1, place], rtol=1e-4, atol=1e-5)
    assert together["age"].tolist() == [8, 5]


def test_an_output_layer_may_have_a_table_of_its_own() -> None:
    tied, untied = (build_model(replace(CONFIG, tied_output=tied), VOCABULARY) for tied in (True, False))
    assert isinstance(tied, Transformer)
    assert isinstance(untied, Transformer)
    assert tied.output.embedding is tied.target_embedding
    assert untied.output.embedding is not untied.target_embedding
    more = dict(untied.named_parameters()).keys() - dict(tied.named_parameters()).keys()
    assert more == {"output.embedding.weight"}
    features = torch.randn(2, CONFIG.width)
    expected = features @ untied.output.embedding.weight.T + untied.output.bias + untied.output.never
    torch.testing.assert_close(untied.output(features), expected)


def test_each_side_may_have_positions_of_its_own() -> None:
    config = replace(CONFIG, positions="learned", shared_positions=False, max_positions=9)
    model = build_model(config, VOCABULARY).eval()
    assert isinstance(model, Transformer)
    source_ST, length_S, target_SU = torch.tensor([[5, 6]]), torch.tensor([2]), torch.tensor([[2, 8]])
    with torch.inference_mode():
        (keys, *_), features_SUD = (
            model.encode(source_ST, length_S)[0].values(),
            model(source_ST, length_S, target_SU),
        )
        assert model.target_positions is not None
        model.target_positions.table_LD.add_(torch.randn(9, CONFIG.width))
        (same, *_), other_SUD = (
            model.encode(source_ST, length_S)[0].values(),
            model(source_ST, length_S, target_SU),
        )
        memory, state = model.encode(source_ST, length_S)
        first_SD, _, state = model.step(target_SU[:, :1], memory, state)
        second_SD, _, _ = model.step(target_SU[:, 1:], memory, state)
    assert torch.equal(keys, same)
    assert not torch.allclose(features_SUD, other_SUD, atol=1e-3)
    torch.testing.assert_close(torch.stack([first_SD, second_SD], dim=1), other_SUD, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("activation", "expected"),
    [
        ("relu", lambda x: max(x, 0.0)),
        ("gelu", lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
        ("gelu-tanh", lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2),
        ("gelu-sigmoid", lambda x: x / (1 + math.exp(-1.702 * x))),
        ("swish", lambda x: x / (1 + math.exp(-x))),
    ],
)
def test_activations_are_those_of_their_formulas(
    activation: Activation, expected: Callable[[float], float]
) -> None:
    for x in (-3.0, -0.4, 0.0, 0.7, 2.5):
        assert float(ACTIVATIONS[activation]()(torch.tensor(x))) == pytest.approx(expected(x), abs=1e-6)
