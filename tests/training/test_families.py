"""What each family does that others don't, and the parts that don't fit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman_training.models import (
    Bahdanau,
    BahdanauConfig,
    Luong,
    LuongConfig,
    MultiHeadConfig,
    Plain,
    PlainConfig,
    Structured,
    StructuredConfig,
    VocabularyShape,
    build_model,
)
from dragoman_training.models.plain import reverse
from dragoman_training.recipe.reader import load_recipe
from dragoman_training.recipe.settings import RecipeError

VOCABULARY = VocabularyShape(source_size=40, target_size=30, shared=False, bos=2, never_produced=(0, 1, 2))
RECIPES = Path(__file__).parents[2] / "training" / "recipes"


def test_a_source_is_reversed_up_to_its_own_end() -> None:
    source_ST = torch.tensor([[5, 6, 7, 3], [8, 3, 0, 0], [3, 0, 0, 0]])
    expected = [[7, 6, 5, 3], [8, 3, 0, 0], [3, 0, 0, 0]]
    assert reverse(source_ST, torch.tensor([4, 2, 1])).tolist() == expected


def test_a_reversing_model_reads_what_a_plain_one_reads_of_a_reversed_source() -> None:
    torch.manual_seed(1)
    ahead = build_model(PlainConfig(embedding_size=6, units=7, layers=2, reverse_source=False), VOCABULARY)
    back = build_model(PlainConfig(embedding_size=6, units=7, layers=2, reverse_source=True), VOCABULARY)
    back.load_state_dict(ahead.state_dict())
    ahead, back = ahead.eval(), back.eval()
    source_ST, length_S = torch.randint(4, 40, (3, 6)), torch.tensor([6, 3, 1])
    _, expected = ahead.encode(reverse(source_ST, length_S), length_S)
    _, found = back.encode(source_ST, length_S)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value)
    _, other = ahead.encode(source_ST, length_S)
    assert not torch.allclose(found["hidden1"], other["hidden1"])


def test_a_plain_decoder_begins_where_each_layer_of_the_encoder_ends() -> None:
    torch.manual_seed(1)
    model = build_model(PlainConfig(embedding_size=6, units=7, layers=2, reverse_source=False), VOCABULARY)
    assert isinstance(model, Plain)
    model.eval()
    source_ST = torch.randint(4, 40, (1, 5))
    _, state = model.encode(source_ST, torch.tensor([5]))
    states = model.source_embedding(source_ST)
    for number, layer in enumerate(model.encoder.layers):
        states, (hidden, cell) = layer.rnn(states)  # type: ignore[union-attr,operator]
        torch.testing.assert_close(state[f"hidden{number}"], hidden[0])
        torch.testing.assert_close(state[f"cell{number}"], cell[0])


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


def test_a_local_model_does_not_see_beyond_its_window() -> None:
    config = LuongConfig(
        embedding_size=6, encoder_units=5, decoder_units=7, attention="local-m", window=1, input_feeding=False
    )
    model = build_model(config, VOCABULARY).eval()
    assert isinstance(model, Luong)
    with torch.no_grad():
        memory, state = model.encode(torch.randint(4, 40, (1, 9)), torch.tensor([9]))
        expected = model.decode(memory, state, torch.full((1, 3), 5))
        # The third query looks at positions 1 to 3.
        changed = memory | {name: memory[name].clone() for name in ("keys", "values")}
        for name in ("keys", "values"):
            changed[name][:, 4:] += 1
        assert torch.equal(model.decode(changed, state, torch.full((1, 3), 5)), expected)
        changed["values"][:, 3] += 1
        assert not torch.equal(model.decode(changed, state, torch.full((1, 3), 5))[:, 2], expected[:, 2])


def test_a_bahdanau_network_reads_embeddings_of_the_size_that_was_asked_for() -> None:
    config = BahdanauConfig(embedding_size=64, encoder_units=5, decoder_units=7, embedding_std=0.5)
    model = build_model(config, VOCABULARY).eval()
    assert isinstance(model, Bahdanau)
    read: list[torch.Tensor] = []
    for reader in (model.encoder, model.token_input, model.token_readout):
        reader.register_forward_pre_hook(lambda module, inputs: read.append(inputs[0]))
    source_ST, length_S = torch.randint(4, 40, (5, 30)), torch.full((5,), 30)
    memory, state = model.encode(source_ST, length_S)
    model.decode(memory, state, torch.randint(4, 30, (5, 20)))
    model.step(torch.randint(4, 30, (5, 1)), memory, state)
    assert [each.std().item() for each in read] == pytest.approx([0.5] * 5, rel=0.1)


def structured(redundancy_penalty: float = 1.0) -> Structured:
    config = StructuredConfig(
        embedding_size=6,
        encoder_units=5,
        decoder_units=7,
        annotations=2,
        annotation_units=4,
        redundancy_penalty=redundancy_penalty,
    )
    model = build_model(config, VOCABULARY)
    assert isinstance(model, Structured)
    return model


def test_the_penalty_is_the_squared_norm_of_what_rows_share() -> None:
    apart, same = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]
    memory = {"annotation": torch.tensor([apart, same]).transpose(1, 2)}
    # A·Aᵀ - I is 0 for the first, and ((-0.5, 0.5), (0.5, -0.5)) for the second.
    assert structured(0.3).penalty(memory).item() == pytest.approx(0.3 * (0 + 1) / 2)


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


def test_families_without_a_penalty_have_none() -> None:
    model = build_model(PlainConfig(embedding_size=6, units=7, layers=1), VOCABULARY)
    assert model.penalty({}) is None


def test_a_structured_model_shows_where_its_vectors_look() -> None:
    model = structured().eval()
    with torch.no_grad():
        memory, state = model.encode(torch.randint(4, 40, (1, 5)), torch.tensor([5]))
        # All of a vector's weight on one position: the decoder's own weights are what is left.
        memory["annotation"] = torch.eye(5)[None, :, :2]
        _, attention_SKT, _ = model.step(torch.full((1, 1), 5), memory, state)
    assert (attention_SKT[0, 0, 2:] == 0).all()
    assert (attention_SKT[0, 0, :2] > 0).all()
    assert attention_SKT.sum().item() == pytest.approx(1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MultiHeadConfig(attention_units=12, heads=5),
            r"model\.heads is 5, which does not divide model\.attention_units, 12; take one of 1, 2, 3, 4",
        ),
        (lambda: MultiHeadConfig(heads=0), r"model\.heads is 0, but must be at least 1"),
        (
            lambda: LuongConfig(attention="local-p"),
            r"model\.attention is local-p, but model\.window is 0; give",
        ),
        (
            lambda: LuongConfig(attention="local-m"),
            r"model\.attention is local-m, but model\.window is 0; give",
        ),
        (lambda: LuongConfig(window=3), r"model\.window is 3, but model\.attention is global"),
        (
            lambda: LuongConfig(attention="local-m", window=-1),
            r"model\.window is -1, but must be at least 0",
        ),
        (
            lambda: LuongConfig(score="dot", encoder_units=200),
            r"model\.score is dot.* model\.decoder_units is 512 .* have 400; make them equal, or take",
        ),
        (lambda: LuongConfig(score="scaled_dot", decoder_units=300), r"model\.score is scaled_dot.* is 300 "),
        (lambda: StructuredConfig(annotations=0), r"model\.annotations is 0, but must be at least 1"),
        (lambda: StructuredConfig(redundancy_penalty=-1), r"model\.redundancy_penalty is -1, but must"),
        (lambda: PlainConfig(layers=0), r"model\.layers is 0, but must be at least 1"),
        (lambda: PlainConfig(embedding_std=0), r"model\.embedding_std is 0, but must be above 0"),
    ],
)
def test_parts_that_do_not_fit_are_named_with_the_way_out(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("recipe", "override", "message"),
    [
        ("luong", "model.score=cosine", r"model\.score: is 'cosine', but must be one of 'dot', 'general'"),
        ("luong", "model.attention=local", r"model\.attention: is 'local', but must be one of 'global'"),
        ("luong", "model.attention=local-p", r"model\.window is 0"),
        ("multi-head", "model.heads=3", r"model\.heads is 3, which does not divide"),
        ("plain", "model.reverse_source=1", r"model\.reverse_source: is 1, but must be of type bool"),
    ],
)
def test_a_recipe_that_does_not_fit_is_refused(recipe: str, override: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        load_recipe(RECIPES / f"multi30k-{recipe}.toml", (override,))
