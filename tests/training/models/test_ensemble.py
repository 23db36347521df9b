"""Several models decode as one: the normalised geometric mean of what they say."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.export.toy_checkpoint import save
from tests.training.toy_pairs import invoke, opened, run_training, toy_model, toy_tokenizer
from torch import Tensor

from dragoman.cli.evaluate import evaluate
from dragoman_training.checkpoint import CheckpointError, load_checkpoint, load_members, vocabulary_shape
from dragoman_training.models import LuongConfig, ModelConfig, PlainConfig, Seq2Seq, TransformerConfig
from dragoman_training.models.ensemble import Ensemble

CONFIGS: list[ModelConfig] = [
    LuongConfig(embedding_size=12, encoder_units=10, decoder_units=14),
    TransformerConfig(width=16, heads=2, feed_forward=20, encoder_layers=1, decoder_layers=1),
    PlainConfig(embedding_size=8, units=14, layers=2),
]
SOURCE_ST = torch.tensor([[5, 9, 7, 3], [8, 3, 0, 0]])
LENGTH_S = torch.tensor([4, 2])
TARGET_SU = torch.tensor([[2, 11, 6], [2, 4, 13]])


@pytest.fixture(scope="module")
def members() -> list[Seq2Seq]:
    torch.manual_seed(1)
    tokenizer = toy_tokenizer()
    members = [toy_model(config, tokenizer).eval() for config in CONFIGS]
    with torch.no_grad():
        for member in members:
            member.output.bias.normal_()
    return members


def ensemble_of(members: list[Seq2Seq]) -> Seq2Seq:
    tokenizer = toy_tokenizer()
    return Ensemble(members, vocabulary_shape(tokenizer, tokenizer)).eval()


def log_probabilities(model: Seq2Seq) -> Tensor:
    """Of every next token along the targets, [S, U, V]."""
    return model.output(model(SOURCE_ST, LENGTH_S, TARGET_SU)).log_softmax(dim=-1)


@torch.no_grad()
def test_a_step_has_the_normalised_geometric_mean_of_what_the_members_say(members: list[Seq2Seq]) -> None:
    means = torch.stack([log_probabilities(member) for member in members]).mean(dim=0)
    expected = means - means.logsumexp(dim=-1, keepdim=True)
    torch.testing.assert_close(log_probabilities(ensemble_of(members)), expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_stepping_gives_what_decoding_gives_and_the_mean_of_what_members_look_at(
    members: list[Seq2Seq],
) -> None:
    ensemble = ensemble_of(members)
    memory, state = ensemble.encode(SOURCE_ST, LENGTH_S)
    own = [member.encode(SOURCE_ST, LENGTH_S) for member in members]
    expected = ensemble(SOURCE_ST, LENGTH_S, TARGET_SU)
    for position in range(TARGET_SU.shape[1]):
        token_S1 = TARGET_SU[:, position : position + 1]
        features_SD, attention_S1T, state = ensemble.step(token_S1, memory, state)
        torch.testing.assert_close(features_SD, expected[:, position], atol=1e-5, rtol=1e-5)
        looked = []
        for number, member in enumerate(members):
            _, weights_S1T, own_state = member.step(token_S1, *own[number])
            own[number] = (own[number][0], own_state)
            looked.append(weights_S1T)
        assert looked.pop().abs().sum() == 0  # The plain one looks nowhere and has no say.
        torch.testing.assert_close(attention_S1T, torch.stack(looked).mean(dim=0))


def test_a_model_twice_says_what_it_says_once(toy_checkpoint: Path, toy_folder: Path) -> None:
    lines = (toy_folder / "test.de").read_text().splitlines()
    told = []
    for number in (1, 2):
        with opened(*[toy_checkpoint] * number, source=None, target=None) as system:
            told.append(system.translate(lines))
            assert system.description.count("safetensors") == number
    assert told[0] == told[1]


def test_members_of_other_languages_or_another_vocabulary_are_refused(
    toy_folder: Path, toy_checkpoint: Path, tmp_path: Path
) -> None:
    checkpoint = load_checkpoint(toy_checkpoint)
    french = replace(checkpoint.recipe.data, target_language="fr")
    changed = replace(checkpoint, recipe=replace(checkpoint.recipe, data=french))
    with pytest.raises(CheckpointError, match=r'translates "de" to "fr", and .* "de" to "en"'):
        load_members([toy_checkpoint, save(changed, tmp_path / "french.safetensors")])
    options = ["--set", "vocabulary.size=120", "training.max_minutes=0.001"]
    run_training(toy_folder / "toy.toml", "--out", tmp_path, *options)
    with pytest.raises(CheckpointError, match="has another vocabulary than"):
        load_members([toy_checkpoint, tmp_path / "best.safetensors"])


def test_without_a_source_there_is_no_ensemble(toy_checkpoint: Path, toy_folder: Path) -> None:
    twice = ["--checkpoint", toy_checkpoint] * 2
    result = invoke(evaluate, *twice, "--reference", toy_folder / "test.en")
    assert result.exit_code == 2
    assert "an ensemble translates: give --source" in result.output
