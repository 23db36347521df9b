"""What is the Transformer's own: a past of each row's own age, positions, and settings that must fit."""

from dataclasses import replace

import pytest
import torch

from dragoman_training.models import Transformer, TransformerConfig, VocabularyShape, build_model
from dragoman_training.recipe.data import DataConfig, RecipeError
from dragoman_training.recipe.settings import DecodingConfig, Recipe

CONFIG = TransformerConfig(width=12, heads=3, feed_forward=20, encoder_layers=1, decoder_layers=2)
VOCABULARY = VocabularyShape(source_size=40, target_size=30, shared=False, bos=2, never_produced=(0, 1, 2))


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
