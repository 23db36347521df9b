"""What each family does that others don't, and the parts and settings that don't fit."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.training.toy_pairs import DATA

from dragoman_training.models import (
    LuongConfig,
    Structured,
    StructuredConfig,
    Transformer,
    TransformerConfig,
    VocabularyShape,
    build_model,
)
from dragoman_training.recipe.data import RecipeError
from dragoman_training.recipe.settings import DecodingConfig, Recipe

VOCABULARY = VocabularyShape(source_size=40, target_size=30, shared=False, bos=2, never_produced=(0, 1, 2))


@pytest.mark.parametrize("attention", ["local-m", "local-p"])
def test_a_translation_may_outgrow_its_source(attention: Any) -> None:
    config = LuongConfig(embedding_size=6, encoder_units=5, decoder_units=7, attention=attention, window=1)
    model = build_model(config, VOCABULARY).eval()
    with torch.no_grad():
        memory, state = model.encode(torch.randint(4, 40, (1, 2)), torch.tensor([2]))
        for _ in range(12):
            features_RD, attention_SKT, state = model.step(torch.full((1, 1), 5), memory, state)
            assert features_RD.isfinite().all()
            assert attention_SKT.sum() > 0


def structured() -> Structured:
    sizes = {"embedding_size": 6, "encoder_units": 5, "decoder_units": 7, "annotation_units": 4}
    model = build_model(StructuredConfig(**sizes, annotations=2, redundancy_penalty=1.0), VOCABULARY)
    assert isinstance(model, Structured)
    return model


def test_the_penalty_teaches_the_annotation_and_no_padding_enters_it() -> None:
    model = structured().eval()
    source_ST = torch.randint(4, 40, (1, 5))
    memory, _ = model.encode(source_ST, torch.tensor([5]))
    padded, _ = model.encode(torch.nn.functional.pad(source_ST, (0, 4)), torch.tensor([5]))
    penalty = model.penalty(memory)
    torch.testing.assert_close(model.penalty(padded), penalty)
    penalty.backward()
    gradient = model.annotation.queries.grad
    assert gradient is not None
    assert gradient.abs().sum() > 0


def test_the_penalty_is_not_rounded_where_training_is() -> None:
    memory = {"annotation": torch.rand(3, 9, 2)}
    with torch.autocast("cpu", torch.bfloat16):
        found = structured().penalty(memory)
    assert torch.equal(found, structured().penalty(memory))


CONFIG = TransformerConfig(width=12, heads=3, feed_forward=20, encoder_layers=1, decoder_layers=2)


@pytest.fixture(params=["pre", "post"])
def model(request: pytest.FixtureRequest) -> Transformer:
    torch.manual_seed(3)
    model = build_model(replace(CONFIG, norm=request.param), VOCABULARY).eval()
    assert isinstance(model, Transformer)
    return model


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
            data=replace(DATA, **{"max_tokens": 40} | data),  # type: ignore[arg-type]
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
