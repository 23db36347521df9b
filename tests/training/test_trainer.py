"""Training: it learns, it resumes to the same numbers, and it stops when it must."""

import shutil
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from dragoman_training.checkpoint import load_checkpoint, read_checkpoint
from dragoman_training.cli import train
from dragoman_training.system import open_checkpoint_system
from dragoman_training.trainer import Trainer


def run(*arguments: object) -> str:
    result = CliRunner().invoke(train, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_a_model_learns_the_toy_corpus(toy_folder: Path, toy_checkpoint: Path) -> None:
    sources = (toy_folder / "test.de").read_text().splitlines()
    targets = (toy_folder / "test.en").read_text().splitlines()
    with open_checkpoint_system(
        str(toy_checkpoint),
        source_language="de",
        target_language="en",
        beam_size=4,
        device="cpu",
        precision="auto",
    ) as system:
        translations = system.translate([*sources, ""])
    right = sum(translation == target for translation, target in zip(translations, targets, strict=False))
    assert right >= 0.9 * len(targets)
    assert translations[-1] == ""


@pytest.mark.parametrize("family", ["luong", "bahdanau-gru", "bahdanau-lstm"])
def test_a_resumed_run_ends_with_the_same_numbers(
    toy_folder: Path, tmp_path: Path, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = toy_folder / "toy.toml"
    options = ["--set", "training.max_epochs=2", "--set", "training.validate_every_epochs=0.7"]
    if family != "luong":
        text = recipe.read_text()
        head, tail = text.split('family = "luong"')[0], text.split("dropout = 0.1")[1]
        recipe = toy_folder / f"{family}.toml"
        cell = family.removeprefix("bahdanau-")
        sizes = (
            "embedding_size = 16\nencoder_units = 16\ndecoder_units = 32\nattention_units = 16\ndropout = 0.1"
        )
        recipe.write_text(f'{head}family = "bahdanau"\ncell = "{cell}"\n{sizes}{tail}')
    run(recipe, "--out", tmp_path / "whole", *options)

    original = Trainer._step

    def interrupted(self: Trainer, batch: object) -> object:
        if self.progress.step == 21:
            raise KeyboardInterrupt
        return original(self, batch)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_step", interrupted)
        result = CliRunner().invoke(train, [str(recipe), "--out", str(tmp_path / "parts"), *options])
    assert result.exit_code == 130, result.output
    assert "--resume" in result.output
    run(recipe, "--out", tmp_path / "parts", *options, "--resume")

    whole, _, whole_progress = read_checkpoint(tmp_path / "whole" / "last.safetensors")
    parts, _, parts_progress = read_checkpoint(tmp_path / "parts" / "last.safetensors")
    assert whole.keys() == parts.keys()
    for name, value in whole.items():
        assert torch.equal(value, parts[name]), name
    drop_time = [{**entry, "seconds": 0} for entry in whole_progress["validations"]]
    assert drop_time == [{**entry, "seconds": 0} for entry in parts_progress["validations"]]


def test_training_does_not_overwrite_an_earlier_run(toy_folder: Path, toy_checkpoint: Path) -> None:
    result = CliRunner().invoke(train, [str(toy_folder / "toy.toml"), "--out", str(toy_checkpoint.parent)])
    assert result.exit_code == 1
    assert "--resume" in result.output


def test_there_must_be_something_to_resume(toy_folder: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(train, [str(toy_folder / "toy.toml"), "--out", str(tmp_path), "--resume"])
    assert result.exit_code == 1
    assert "nothing to resume" in result.output


def test_resuming_with_another_model_is_refused(
    toy_folder: Path, toy_checkpoint: Path, tmp_path: Path
) -> None:
    shutil.copytree(toy_checkpoint.parent, tmp_path / "run")
    result = CliRunner().invoke(
        train,
        [
            str(toy_folder / "toy.toml"),
            "--out",
            str(tmp_path / "run"),
            "--resume",
            "--set",
            "model.decoder_units=8",
        ],
    )
    assert result.exit_code == 1
    assert "another model" in result.output


def test_a_diverging_loss_stops_training_and_says_where(toy_folder: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        train,
        [
            *(str(toy_folder / "toy.toml"), "--out", str(tmp_path)),
            *("--set", "training.learning_rate=1e38", "--set", "training.warmup_steps=1"),
        ],
    )
    assert result.exit_code == 1
    assert "diverged at step" in result.output


def test_training_stops_when_bleu_no_longer_rises(toy_folder: Path, tmp_path: Path) -> None:
    run(
        *(toy_folder / "toy.toml", "--out", tmp_path, "--set", "training.patience=2"),
        *("--set", "training.learning_rate=1e-12", "--set", "training.validate_every_epochs=0.1"),
    )
    validations = load_checkpoint(tmp_path / "last.safetensors").progress["validations"]
    assert len(validations) == 3


def test_a_time_limit_ends_training(toy_folder: Path, tmp_path: Path) -> None:
    run(
        *(toy_folder / "toy.toml", "--out", tmp_path, "--set", "training.max_minutes=0.001"),
        *("--set", "training.validate_every_epochs=0.1"),
    )
    assert (tmp_path / "best.safetensors").exists()
    assert load_checkpoint(tmp_path / "last.safetensors").progress["epoch"] == 0
