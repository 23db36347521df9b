"""How a training begins: in a folder of its own, from another's parameters, or where it was stopped."""

import re
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from tests.training.toy_pairs import invoke, refusal, run_training

from dragoman_training.checkpoint import load_checkpoint, provenances, write_checkpoint
from dragoman_training.cli import train
from dragoman_training.recipe.reader import load_recipe
from dragoman_training.run.resuming import changed_around, changed_on_resuming
from dragoman_training.run.run_folder import claimed, left_by_another
from dragoman_training.run.validation import Progress


def test_a_folder_is_held_by_one(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with claimed(folder):
        (folder / "last.safetensors").touch()
        with pytest.raises(ValueError, match=r"another training is writing to .*run"), claimed(folder):
            pytest.fail("the block must not run")
    with claimed(folder):
        assert (folder / "last.safetensors").exists()


def test_one_set_takes_several_values(toy_folder: Path, tmp_path: Path) -> None:
    """A run that wrote nothing leaves no folder."""
    recipe, out = toy_folder / "toy.toml", ["--out", tmp_path / "runs" / "run"]
    values = ["training.seed=2", "data.train_source=nowhere", "model.dropout=7"]
    for number, said in ((2, "nowhere"), (3, "dropout is 7")):
        assert said in refusal(recipe, *out, "--set", *values[:number])
    assert "'second.toml' is no KEY=VALUE" in invoke(train, recipe, "second.toml", *out).output
    # Which of the two is meant nobody knows.
    twice = invoke(train, recipe, *out, "--set", "name=a", "--set", "name=b")
    assert "name is set twice" in twice.output
    assert not (tmp_path / "runs" / "run").exists()


@pytest.mark.parametrize(
    ("name", "way"),
    [("last.safetensors", "--resume"), ("best.safetensors", "--out"), ("step-40.safetensors", "--out")],
)
def test_what_another_run_left_is_not_written_over(
    toy_folder: Path, tmp_path: Path, name: str, way: str
) -> None:
    assert left_by_another(tmp_path) is None
    (tmp_path / name).write_bytes(b"a model")
    said = refusal(toy_folder / "toy.toml", "--out", tmp_path)
    assert f"{name} exists" in said
    assert way in said
    assert (tmp_path / name).read_bytes() == b"a model"


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


def begun(recipe: Path, start: Path | str, *settings: str) -> list[object]:
    """What `dragoman train` is called with, to begin with that."""
    chosen = [f"training.start_from={start}", "training.batch_tokens=1200", *settings]
    return [recipe, "--out", recipe.parent / "run", "--set", *chosen]


def test_it_begins_with_the_parameters_and_the_vocabulary_of_the_start(
    toy_checkpoint: Path, other_text: Path
) -> None:
    settings = ("training.learning_rate=1e-12", "training.max_epochs=1", "model.dropout=0.3")
    run_training(*begun(other_text, toy_checkpoint, *settings))
    start, found = map(load_checkpoint, (toy_checkpoint, other_text.parent / "run" / "best.safetensors"))
    assert found.source_tokenizer.model == start.source_tokenizer.model
    parameters = (list(each.model.parameters()) for each in (found, start))
    torch.testing.assert_close(*parameters, rtol=0, atol=1e-6)
    assert found.recipe.model.dropout == 0.3
    owed = [asdict(each) for each in provenances(start.recipe, start.progress)]
    assert found.progress["begun_with"] == owed != []


def test_what_makes_it_worse_does_not_become_the_best(toy_checkpoint: Path, other_text: Path) -> None:
    settings = ("training.learning_rate=0.5", "training.warmup_steps=1", "training.max_epochs=1")
    said = run_training(*begun(other_text, toy_checkpoint, *settings))
    assert "No validation was better than that of the model it was begun with" in said
    start, best = map(load_checkpoint, (toy_checkpoint, other_text.parent / "run" / "best.safetensors"))
    assert best.progress["step"] == 0
    for ours, theirs in zip(best.model.parameters(), start.model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_a_resumed_run_starts_from_where_it_was_begun(toy_checkpoint: Path, other_text: Path) -> None:
    run_training(*begun(other_text, toy_checkpoint, "training.max_minutes=0.001"))
    said = refusal(*begun(other_text, "elsewhere.safetensors"), "--resume")
    assert f"training.start_from was '{toy_checkpoint}'" in said
    assert "with the settings that it was begun with" in said


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.encoder_units=32", r"model.encoder_units 48, the recipe 32; .* only dropout may differ"),
        ("vocabulary.size=120", "vocabulary.size 150, the recipe 120"),
        ("data.target_language=fr", 'translates "de" to "en", the recipe "de" to "fr"'),
    ],
)
def test_another_model_or_vocabulary_or_language_is_refused(
    toy_checkpoint: Path, other_text: Path, setting: str, message: str
) -> None:
    said = refusal(*begun(other_text, toy_checkpoint, setting))
    assert said.startswith("training.start_from: ")
    assert re.search(message, said)
    assert not (other_text.parent / "run" / "last.safetensors").exists()


def test_a_start_that_does_not_fit_its_own_recipe_is_named(toy_checkpoint: Path, other_text: Path) -> None:
    start = load_checkpoint(toy_checkpoint)
    damaged = other_text.parent / "damaged.safetensors"
    tokenizers = (start.source_tokenizer, start.target_tokenizer)
    write_checkpoint(damaged, start.recipe, tokenizers, {}, start.progress)
    said = refusal(*begun(other_text, damaged))
    assert said.startswith(f"{damaged}: the checkpoint does not fit its own recipe")


OTHER_NUMBERS = "not be those of a run in one stretch"
OTHER_END = "validated as a run in one stretch may not"


@pytest.mark.parametrize(
    ("override", "consequence"),
    [
        ("clip_norm=2", OTHER_NUMBERS),
        ("adam_betas=[0.9,0.9]", OTHER_NUMBERS),
        ("weight_decay=0.1", OTHER_NUMBERS),
        ("threads=2", OTHER_NUMBERS),
        ("precision=bf16", OTHER_NUMBERS),
        ("max_minutes=3", OTHER_END),
        ("patience=1", OTHER_END),
        ("max_epochs=1", OTHER_END),
    ],
)
def test_what_goes_on_in_another_way_is_told(toy_folder: Path, override: str, consequence: str) -> None:
    settings = ("training.optimizer=adamw", "training.decay=constant")
    saved = load_recipe(toy_folder / "toy.toml", settings)
    assert changed_on_resuming(saved, saved) == []
    changed = load_recipe(toy_folder / "toy.toml", (*settings, f"training.{override}"))
    (told,) = changed_on_resuming(saved, changed)
    assert told.startswith(f"training.{override.split('=')[0]} was ")
    assert consequence in told


def test_another_precision_that_auto_came_to_is_told() -> None:
    now = Progress(precision="fp32")
    (told,) = changed_around(Progress(precision="bf16"), now)
    assert told.startswith("it computed in bf16 and computes in fp32")
    assert changed_around(Progress(precision="fp32"), now) == []
    assert changed_around(Progress(precision=None), now) == []
