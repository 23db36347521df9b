"""The objective is the model's own loss, whole or in parts; what decoders read and look at is guided."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from tests.export.toy_checkpoint import CONFIGS
from tests.training.toy_pairs import DATA, long_but_for, toy_corpus, toy_model

from dragoman_training.alignment.pieces import TokenLinker
from dragoman_training.data.batching import Pairs
from dragoman_training.models import Seq2Seq, TransformerConfig
from dragoman_training.recipe.data import RecipeError, SubwordSamplingConfig
from dragoman_training.recipe.settings import GuidedAlignmentConfig, Recipe, ScheduledSamplingConfig
from dragoman_training.run.objective import (
    Objective,
    decode_scheduled,
    guided_loss,
    linear_cross_entropy,
    teacher_forcing,
)

FAMILIES = pytest.mark.parametrize("family", CONFIGS)
LOOKING = [family for family, config in CONFIGS.items() if config.family not in ("lm", "plain")]


@pytest.fixture(scope="module")
def pairs(tokenizer: Tokenizer) -> Pairs:
    return Pairs(toy_corpus(), tokenizer, tokenizer, max_tokens=None)


def model_of(family: str, tokenizer: Tokenizer) -> Seq2Seq:
    torch.manual_seed(2)
    return toy_model(CONFIGS[family], tokenizer)


@FAMILIES
def test_with_the_reference_alone_it_is_the_models_own_loss_to_the_bit(
    family: str, tokenizer: Tokenizer, pairs: Pairs
) -> None:
    model = model_of(family, tokenizer).train()
    objective = Objective(model, label_smoothing=0.1)
    batch = pairs.batch([0, 1, 2])
    torch.manual_seed(5)
    minimised, plain = objective(batch)

    torch.manual_seed(5)
    memory, state = model.encode(batch.source_ST, batch.source_length_S)
    features_SUD = model.decode(memory, state, batch.target_input_SU)
    counted_SU = batch.counted
    weight_VD, bias_V = model.output.embedding.weight, model.output.bias
    features_ND, target_N = features_SUD[counted_SU], batch.target_output_SU[counted_SU]
    losses = linear_cross_entropy(features_ND, weight_VD, bias_V, target_N, smoothing=0.1)
    expected, expected_plain = losses
    penalty = model.penalty(memory)
    if penalty is not None:
        expected = expected + 3 * penalty
        assert minimised > expected_plain
    assert torch.equal(minimised, expected)
    assert torch.equal(plain, expected_plain)


@FAMILIES
def test_gradients_of_parts_add_up_to_those_of_the_whole(
    family: str, tokenizer: Tokenizer, pairs: Pairs
) -> None:
    model = model_of(family, tokenizer).eval()
    objective = Objective(model, label_smoothing=0.1)
    objective(pairs.batch(range(6)))[0].backward()
    whole = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    for numbers in ([0, 1], [2, 3, 4, 5]):
        objective(pairs.batch(numbers))[0].backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, whole[name], rtol=1e-4, atol=1e-4)


@FAMILIES
def test_without_the_reference_the_decoder_reads_what_it_predicted_and_half_with_it_has_gradients(
    family: str, tokenizer: Tokenizer, pairs: Pairs
) -> None:
    model = model_of(family, tokenizer).eval()
    batch = pairs.batch([0, 3])
    memory, state = model.encode(batch.source_ST, batch.source_length_S)
    features_SUD = decode_scheduled(model, memory, state, batch.target_input_SU, teacher_forcing=0.0)
    own_SU = model.output(features_SUD)[:, :-1].argmax(dim=-1)
    read_SU = torch.cat([batch.target_input_SU[:, :1], own_SU], dim=1)
    assert not torch.equal(read_SU, batch.target_input_SU)
    decoded = model.decode(memory, state, read_SU)
    torch.testing.assert_close(features_SUD, decoded, rtol=1e-4, atol=1e-5)
    Objective(model.train(), label_smoothing=0.1)(batch, 0.5)[0].backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize(
    ("decay", "after"),
    [
        ("linear", lambda done: 1 - done / 100),
        ("exponential", lambda done: math.exp(-1 / 100) ** done),
        ("inverse_sigmoid", lambda done: 100 / (100 + math.exp(done / 100))),
    ],
)
def test_it_falls_by_the_papers_formula_down_to_the_least(
    decay: Literal["linear", "exponential", "inverse_sigmoid"], after: object
) -> None:
    config = ScheduledSamplingConfig(decay=decay, pace=100, least=0.25)
    for step in (1, 2, 30, 70, 400, 600, 10**7):
        exact = after(min(step - 1, 70_000))  # type: ignore[operator]
        assert teacher_forcing(config, step) == pytest.approx(max(0.25, exact))


def test_loss_is_the_cross_entropy_of_links() -> None:
    attention_SUT = torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.9, 0.0], [1.0, 0.0, 0.0]]])
    # The first token has two links, the second none, and the third one where nothing is looked at.
    guide_SUT = torch.tensor([[[0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]])
    expected = -0.5 * math.log(0.5) - 0.5 * math.log(0.25) - math.log(1e-6)
    assert float(guided_loss(attention_SUT, guide_SUT)) == pytest.approx(expected, rel=1e-5)


def test_guides_of_a_batch_are_the_links_of_its_pairs(tokenizer: Tokenizer) -> None:
    pairs = Pairs(toy_corpus(), tokenizer, tokenizer, max_tokens=None)
    assert pairs.batch([0, 1]).guide_SUT is None
    first, other = np.array([[0, 0], [1, 0]], np.int32), np.empty((0, 2), np.int32)
    pairs.guide(lambda sample: lambda given: [first, *[other] * (len(given) - 1)], max_pairs=9)
    batch = pairs.batch([0, 1])
    assert batch.guide_SUT is not None
    assert batch.guide_SUT.shape == (*batch.target_output_SU.shape, batch.source_ST.shape[1])
    assert batch.guide_SUT[0, 0, :3].tolist() == [0.5, 0.5, 0.0]
    assert float(batch.guide_SUT.sum()) == 1


@pytest.mark.parametrize("family", LOOKING)
def test_decoding_that_looks_says_the_same(family: str, tokenizer: Tokenizer, pairs: Pairs) -> None:
    model = model_of(family, tokenizer).eval()
    batch = pairs.batch([0, 1, 2])
    with torch.no_grad():
        memory, state = model.encode(batch.source_ST, batch.source_length_S)
        features_SUD, attention_SUT = model.decode_with_attention(memory, state, batch.target_input_SU)
        torch.testing.assert_close(features_SUD, model.decode(memory, state, batch.target_input_SU))
    assert attention_SUT.shape == (*batch.target_input_SU.shape, batch.source_ST.shape[1])


@pytest.mark.parametrize("family", long_but_for(("luong", "transformer"), LOOKING))
def test_attention_learns_the_links(family: str, tokenizer: Tokenizer) -> None:
    """The same steps with and without: only with it the loss of attention falls far.

    The first is linked with the first, and so on, which is in the window of every family.
    """
    pairs = Pairs(toy_corpus(), tokenizer, tokenizer, max_tokens=None)

    def link_in_order(given: Sequence[tuple[Any, Any]]) -> list[np.ndarray]:
        return [np.array([(i, i) for i in range(min(map(len, pair)))], np.int32) for pair in given]

    pairs.guide(lambda sample: link_in_order, max_pairs=9)
    losses = {}
    for weight in (0.0, 10.0):
        model = model_of(family, tokenizer).train()
        objective = Objective(model, label_smoothing=0.1, guided_weight=weight)
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
        batch = pairs.batch(range(4))
        torch.manual_seed(3)
        for _ in range(40):
            optimizer.zero_grad()
            minimised, _ = objective(batch)
            minimised.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            whole, _ = Objective(model, label_smoothing=0.1, guided_weight=1.0)(batch)
            without, _ = Objective(model, label_smoothing=0.1)(batch)
        losses[weight] = float(whole - without)
    assert losses[10.0] < 0.9 * losses[0.0]


def test_links_are_those_of_an_aligner() -> None:
    random = np.random.default_rng(1)
    sources = [random.integers(5, 15, random.integers(2, 6)).tolist() for _ in range(200)]
    given = [(source, [token + 100 for token in reversed(source)]) for source in sources]
    found = TokenLinker(given)(given)
    same = [
        sorted(map(tuple, links.tolist())) == [(i, len(source) - 1 - i) for i in range(len(source))]
        for (source, _), links in zip(given, found, strict=True)
        if len(set(source)) == len(source)
    ]
    assert np.mean(same) > 0.9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": CONFIGS["plain"]}, "no attention to guide"),
        ({"subword_sampling": SubwordSamplingConfig(source=True)}, "subword_sampling"),
        ({"scheduled_sampling": ScheduledSamplingConfig(teacher_forcing=0.9)}, "scheduled_sampling"),
    ],
)
def test_what_it_does_not_go_with_is_told(changes: dict[str, object], message: str) -> None:
    guided = GuidedAlignmentConfig(weight=0.1)
    recipe = Recipe(name="guided", data=DATA, model=TransformerConfig(), guided_alignment=guided)
    with pytest.raises(RecipeError, match=message):
        replace(recipe, **changes)  # type: ignore[arg-type]
