"""Checkpoints: what is written is what is read, and anything else is refused."""

import errno
import json
import os
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from dragoman_training.checkpoint import (
    CheckpointError,
    load_checkpoint,
    load_parameters,
    read_checkpoint,
    write_checkpoint,
)
from dragoman_training.decoding.system import open_checkpoint_system


def test_a_checkpoint_holds_the_whole_model(toy_checkpoint: Path) -> None:
    checkpoint = load_checkpoint(toy_checkpoint)
    tensors, recipe, progress = read_checkpoint(toy_checkpoint)
    assert checkpoint.recipe == recipe
    assert recipe.card.licence == "CC0-1.0"
    assert progress["best_bleu"] == max(entry["bleu"] for entry in progress["validations"])
    assert checkpoint.source_tokenizer is checkpoint.target_tokenizer
    for name, parameter in checkpoint.model.named_parameters():
        assert torch.equal(parameter, tensors[f"model.{name}"])


def test_a_full_disk_costs_the_new_checkpoint_alone(
    toy_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    loaded = load_checkpoint(toy_checkpoint)
    tokenizers = (loaded.source_tokenizer, loaded.target_tokenizer)
    tensors, recipe, progress = read_checkpoint(toy_checkpoint)
    path = tmp_path / "last.safetensors"
    path.write_bytes(b"the one before")
    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match=r"can't be written \(No space left on device\).*last\.safetensors"):
        write_checkpoint(path, recipe, tokenizers, tensors, progress)
    assert path.read_bytes() == b"the one before"
    assert list(tmp_path.iterdir()) == [path]


def test_another_safetensors_file_is_refused(tmp_path: Path) -> None:
    save_file({"x": torch.zeros(1)}, tmp_path / "x.safetensors")
    with pytest.raises(CheckpointError, match="is not a dragoman checkpoint 1"):
        load_checkpoint(tmp_path / "x.safetensors")


def rewritten(path: Path, out: Path, **changes: str) -> Path:
    """A copy of a checkpoint with other metadata."""
    with safe_open(path, framework="pt") as stream:
        tensors = {name: stream.get_tensor(name) for name in list(stream.keys())}
        save_file(tensors, out, {**stream.metadata(), **changes})
    return out


def test_a_checkpoint_of_another_version_is_refused(toy_checkpoint: Path, tmp_path: Path) -> None:
    path = rewritten(toy_checkpoint, tmp_path / "x.safetensors", format="dragoman checkpoint 99")
    with pytest.raises(CheckpointError, match=r"is not a dragoman checkpoint 1, but dragoman checkpoint 99"):
        load_checkpoint(path)


def test_a_checkpoint_of_a_family_that_is_not_here_is_refused(toy_checkpoint: Path, tmp_path: Path) -> None:
    with safe_open(toy_checkpoint, framework="pt") as stream:
        recipe = json.loads(stream.metadata()["recipe"])
    recipe["model"]["family"] = "mamba"
    path = rewritten(toy_checkpoint, tmp_path / "x.safetensors", recipe=json.dumps(recipe))
    with pytest.raises(CheckpointError, match=r'not one of this version.*model\.family: is "mamba"'):
        load_checkpoint(path)


def test_a_checkpoint_from_before_a_key_was_there_is_read(toy_checkpoint: Path, tmp_path: Path) -> None:
    with safe_open(toy_checkpoint, framework="pt") as stream:
        recipe = json.loads(stream.metadata()["recipe"])
    for key in ("scheduled_sampling", "subword_sampling"):
        del recipe[key]
    for key in ("optimizer", "weight_decay", "accumulate_batches", "early_stopping", "keep_validated"):
        del recipe["training"][key]
    path = rewritten(toy_checkpoint, tmp_path / "x.safetensors", recipe=json.dumps(recipe))
    assert load_checkpoint(path).recipe == load_checkpoint(toy_checkpoint).recipe


def test_a_damaged_file_is_refused(toy_checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(toy_checkpoint.read_bytes()[:1000])
    with pytest.raises(CheckpointError, match="damaged or no checkpoint"):
        load_checkpoint(tmp_path / "x.safetensors")


@pytest.mark.parametrize("metadata", [{"recipe": "{"}, {"progress": "{"}])
def test_a_file_whose_recipe_or_progress_is_cut_is_refused(
    toy_checkpoint: Path, tmp_path: Path, metadata: dict[str, str]
) -> None:
    path = rewritten(toy_checkpoint, tmp_path / "x.safetensors", **metadata)
    with pytest.raises(CheckpointError, match=r"x\.safetensors: is damaged: its recipe or progress"):
        load_checkpoint(path)


def test_a_folder_is_refused_with_the_file_to_name(toy_checkpoint: Path) -> None:
    with pytest.raises(CheckpointError, match=r"is a folder.*best\.safetensors"):
        load_checkpoint(toy_checkpoint.parent)


def test_parameters_that_do_not_fit_are_named(toy_checkpoint: Path) -> None:
    checkpoint = load_checkpoint(toy_checkpoint)
    tensors, _, _ = read_checkpoint(toy_checkpoint)
    tensors["model.bridge.bias"] = tensors["model.bridge.bias"][:-1]
    with pytest.raises(CheckpointError, match=r'parameter "bridge\.bias" is'):
        load_parameters(checkpoint.model, tensors, "model.")
    del tensors["model.bridge.bias"]
    with pytest.raises(CheckpointError, match=r'parameter "bridge\.bias" has no counterpart'):
        load_parameters(checkpoint.model, tensors, "model.")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source_language": "fr"}, 'translates "de" to "en"'),
        ({"precision": "int8"}, "needs an exported bundle"),
    ],
)
def test_a_system_that_does_not_exist_is_refused(
    toy_checkpoint: Path, change: dict[str, str], message: str
) -> None:
    options = {
        "source_language": "de",
        "target_language": "en",
        "device": "cpu",
        "precision": "auto",
        "shortlist": None,
        **change,
    }
    with (
        pytest.raises(ValueError, match=message),
        open_checkpoint_system(str(toy_checkpoint), beam_size=1, **options),
    ):
        pass


def test_languages_are_asked_for_in_any_case(toy_checkpoint: Path) -> None:
    with open_checkpoint_system(
        str(toy_checkpoint),
        source_language="DE",
        target_language="En",
        beam_size=1,
        device="cpu",
        precision="auto",
    ) as system:
        # Blank, and nothing but what has no width.
        before, *nothing, after = system.translate(["ja", "", "  ", "\u200b", "\x01", "ja"])
        assert nothing == [""] * 4
        assert before == after != ""
