"""A training begins where another one ended: on other text, with its vocabulary and its parameters."""

from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result

from dragoman_training.checkpoint import CheckpointError, load_checkpoint, provenances, write_checkpoint
from dragoman_training.cli import train


@pytest.fixture
def other_text(toy_folder: Path, tmp_path: Path) -> Path:
    """The recipe in a folder with other pairs, which would make another vocabulary: nobody is an old man."""
    for split in ("train", "valid"):
        for side, old, new in (("de", "mann", "wal"), ("en", "man", "whale")):
            text = (toy_folder / f"{split}.{side}").read_text()
            (tmp_path / f"{split}.{side}").write_text(text.replace(old, new))
    recipe = tmp_path / "toy.toml"
    recipe.write_text((toy_folder / "toy.toml").read_text())
    return recipe


def run(recipe: Path, start: Path | str, *settings: str) -> Result:
    chosen = [f"training.start_from={start}", "training.batch_tokens=1200", *settings]
    options = [option for setting in chosen for option in ("--set", setting)]
    return CliRunner().invoke(train, [str(recipe), "--out", str(recipe.parent / "run"), *options])


def test_it_begins_with_the_parameters_and_the_vocabulary_of_the_start(
    toy_checkpoint: Path, other_text: Path
) -> None:
    settings = ("training.learning_rate=1e-12", "training.max_epochs=1", "model.dropout=0.3")
    result = run(other_text, toy_checkpoint, *settings)
    assert result.exit_code == 0, result.output
    start, found = (
        load_checkpoint(toy_checkpoint),
        load_checkpoint(other_text.parent / "run/best.safetensors"),
    )
    assert found.source_tokenizer.model == start.source_tokenizer.model
    for ours, theirs in zip(found.model.parameters(), start.model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
    assert found.recipe.model.dropout == 0.3
    owed = [asdict(each) for each in provenances(start.recipe, start.progress)]
    assert found.progress["begun_with"] == owed != []


def test_what_makes_it_worse_does_not_become_the_best(toy_checkpoint: Path, other_text: Path) -> None:
    settings = ("training.learning_rate=0.5", "training.warmup_steps=1", "training.max_epochs=1")
    result = run(other_text, toy_checkpoint, *settings)
    assert result.exit_code == 0, result.output
    assert "No validation was better than that of the model it was begun with" in result.output
    start, best = (
        load_checkpoint(toy_checkpoint),
        load_checkpoint(other_text.parent / "run/best.safetensors"),
    )
    assert best.progress["step"] == 0
    for ours, theirs in zip(best.model.parameters(), start.model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_a_resumed_run_starts_from_where_it_was_begun(toy_checkpoint: Path, other_text: Path) -> None:
    assert run(other_text, toy_checkpoint, "training.max_minutes=0.001").exit_code == 0
    options = ["--resume", "--set", "training.start_from=elsewhere.safetensors", "training.batch_tokens=1200"]
    result = CliRunner().invoke(train, [str(other_text), "--out", str(other_text.parent / "run"), *options])
    assert isinstance(result.exception, ValueError)
    assert f"training.start_from was '{toy_checkpoint}'" in str(result.exception)
    assert "with the settings that it was begun with" in str(result.exception)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.encoder_units=32", r"model.encoder_units 48, the recipe 32; .* only dropout may differ"),
        ("vocabulary.size=120", "vocabulary.size 150, the recipe 120"),
    ],
)
def test_another_model_or_vocabulary_is_refused(
    toy_checkpoint: Path, other_text: Path, setting: str, message: str
) -> None:
    result = run(other_text, toy_checkpoint, setting)
    assert isinstance(result.exception, ValueError)
    assert result.exception.args[0].startswith("training.start_from: ")
    with pytest.raises(ValueError, match=message):
        raise result.exception
    assert not (other_text.parent / "run" / "last.safetensors").exists()


def test_a_start_of_other_languages_is_refused(toy_checkpoint: Path, other_text: Path) -> None:
    result = run(other_text, toy_checkpoint, "data.target_language=fr")
    assert isinstance(result.exception, CheckpointError)
    assert 'translates "de" to "en", the recipe "de" to "fr"' in str(result.exception)


def test_a_start_that_does_not_fit_its_own_recipe_is_named(toy_checkpoint: Path, other_text: Path) -> None:
    start = load_checkpoint(toy_checkpoint)
    damaged = other_text.parent / "damaged.safetensors"
    tokenizers = (start.source_tokenizer, start.target_tokenizer)
    write_checkpoint(damaged, start.recipe, tokenizers, {}, start.progress)
    result = run(other_text, damaged)
    assert isinstance(result.exception, CheckpointError)
    assert str(result.exception).startswith(f"{damaged}: the checkpoint does not fit its own recipe")
