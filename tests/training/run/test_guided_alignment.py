"""Attention that learns where words come from: its loss, the links it learns from, and what it learns."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from dragoman_bundle.tokenizers.tokenizer import Tokenizer
from numpy.typing import NDArray
from tests.export.toy_checkpoint import CONFIGS
from tests.training.toy_pairs import toy_corpus, toy_model, toy_tokenizer

from dragoman_training.alignment.pieces import TokenLinker
from dragoman_training.data.batching import Pairs
from dragoman_training.models import Seq2Seq, TransformerConfig
from dragoman_training.recipe.data import DataConfig, RecipeError, SubwordSamplingConfig
from dragoman_training.recipe.settings import GuidedAlignmentConfig, Recipe, ScheduledSamplingConfig
from dragoman_training.run.objective import Objective, guided_loss

LOOKING = [family for family, config in CONFIGS.items() if config.family not in ("lm", "plain")]
GUIDED = pytest.mark.parametrize("family", LOOKING)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return toy_tokenizer()


@pytest.fixture(scope="module")
def pairs(tokenizer: Tokenizer) -> Pairs:
    pairs = Pairs(toy_corpus(), tokenizer, tokenizer, max_tokens=None)
    pairs.guide(lambda sample: lambda given: [links_one_by_one(*pair) for pair in given], max_pairs=9)
    return pairs


def links_one_by_one(source: Sequence[int], target: Sequence[int]) -> NDArray[np.int32]:
    """The first with the first, and so on, which is in the window of every family."""
    return np.array([(place, place) for place in range(min(len(source), len(target)))], np.int32)


def model_of(family: str, tokenizer: Tokenizer) -> Seq2Seq:
    torch.manual_seed(2)
    return toy_model(CONFIGS[family], tokenizer)


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


@GUIDED
def test_decoding_that_looks_says_the_same(family: str, tokenizer: Tokenizer, pairs: Pairs) -> None:
    model = model_of(family, tokenizer).eval()
    batch = pairs.batch([0, 1, 2])
    with torch.no_grad():
        memory, state = model.encode(batch.source_ST, batch.source_length_S)
        features_SUD, attention_SUT = model.decode_with_attention(memory, state, batch.target_input_SU)
        torch.testing.assert_close(features_SUD, model.decode(memory, state, batch.target_input_SU))
    assert attention_SUT.shape == (*batch.target_input_SU.shape, batch.source_ST.shape[1])


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(name, marks=[] if name in ("luong", "transformer") else [pytest.mark.long])
        for name in LOOKING
    ],
)
def test_attention_learns_the_links(family: str, tokenizer: Tokenizer, pairs: Pairs) -> None:
    """The same steps with and without: only with it the loss of attention falls far."""
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
    data = DataConfig(
        source_language="de", target_language="en", train_tsv=("train.tsv",), valid_tsv=("valid.tsv",)
    )
    recipe = Recipe(
        name="guided",
        data=data,
        model=TransformerConfig(),
        guided_alignment=GuidedAlignmentConfig(weight=0.1),
    )
    with pytest.raises(RecipeError, match=message):
        replace(recipe, **changes)  # type: ignore[arg-type]
