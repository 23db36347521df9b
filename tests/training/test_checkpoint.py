"""Checkpoints: what is written is what is read, anything else is refused, and a mean is of one run."""

import errno
import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tests.export.toy_checkpoint import save
from tests.training.toy_pairs import invoke, opened, refusal, run_training

from dragoman_training.average import average, average_checkpoints
from dragoman_training.checkpoint import (
    CheckpointError,
    load_checkpoint,
    load_parameters,
    read_checkpoint,
    write_checkpoint,
)
from dragoman_training.saved_folder import read_arrays, write_arrays


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


def rewritten(path: Path, out: Path, **changes: str) -> Path:
    """A copy of a checkpoint with other metadata."""
    with safe_open(path, framework="pt") as stream:
        tensors = {name: stream.get_tensor(name) for name in list(stream.keys())}
        save_file(tensors, out, {**stream.metadata(), **changes})
    return out


def test_a_file_that_is_no_checkpoint_or_a_damaged_one_is_refused(
    toy_checkpoint: Path, tmp_path: Path
) -> None:
    path = tmp_path / "x.safetensors"

    def assert_refused(message: str, **changes: str) -> None:
        if changes:
            rewritten(toy_checkpoint, path, **changes)
        with pytest.raises(CheckpointError, match=message):
            load_checkpoint(path)

    save_file({"x": torch.zeros(1)}, path)
    assert_refused("is not a dragoman checkpoint 1")
    path.write_bytes(toy_checkpoint.read_bytes()[:1000])
    assert_refused("damaged or no checkpoint")
    assert_refused(
        "is not a dragoman checkpoint 1, but dragoman checkpoint 99", format="dragoman checkpoint 99"
    )
    assert_refused(r"x\.safetensors: is damaged: its recipe or progress", recipe="{")
    assert_refused(r"x\.safetensors: is damaged: its recipe or progress", progress="{")
    recipe = recipe_in(toy_checkpoint)
    recipe["model"]["family"] = "mamba"
    assert_refused(r'not one of this version.*model\.family: is "mamba"', recipe=json.dumps(recipe))
    with pytest.raises(CheckpointError, match=r"is a folder.*best\.safetensors"):
        load_checkpoint(toy_checkpoint.parent)


def recipe_in(path: Path) -> dict[str, Any]:
    with safe_open(path, framework="pt") as stream:
        recipe: dict[str, Any] = json.loads(stream.metadata()["recipe"])
    return recipe


def test_a_checkpoint_from_before_a_key_was_there_is_read(toy_checkpoint: Path, tmp_path: Path) -> None:
    recipe = recipe_in(toy_checkpoint)
    for key in ("scheduled_sampling", "subword_sampling"):
        del recipe[key]
    for key in ("optimizer", "weight_decay", "accumulate_batches", "early_stopping", "keep_validated"):
        del recipe["training"][key]
    path = rewritten(toy_checkpoint, tmp_path / "x.safetensors", recipe=json.dumps(recipe))
    assert load_checkpoint(path).recipe == load_checkpoint(toy_checkpoint).recipe


def test_parameters_that_do_not_fit_are_named(toy_checkpoint: Path) -> None:
    checkpoint = load_checkpoint(toy_checkpoint)
    tensors, _, _ = read_checkpoint(toy_checkpoint)
    tensors["model.bridge.bias"] = tensors["model.bridge.bias"][:-1]
    with pytest.raises(CheckpointError, match=r'parameter "bridge\.bias" is'):
        load_parameters(checkpoint.model, tensors, "model.")
    del tensors["model.bridge.bias"]
    with pytest.raises(CheckpointError, match=r'parameter "bridge\.bias" has no counterpart'):
        load_parameters(checkpoint.model, tensors, "model.")


def test_a_system_that_does_not_exist_is_refused(toy_checkpoint: Path) -> None:
    with pytest.raises(ValueError, match='translates "de" to "en"'), opened(toy_checkpoint, source="fr"):
        pytest.fail("it was opened")
    with pytest.raises(ValueError, match="an exported bundle"), opened(toy_checkpoint, precision="int8"):
        pytest.fail("it was opened")


def test_languages_are_asked_for_in_any_case(toy_checkpoint: Path) -> None:
    with opened(toy_checkpoint, source="DE") as system:
        # Blank, and nothing but what has no width.
        before, *nothing, after = system.translate(["ja", "", "  ", "\u200b", "\x01", "ja"])
        assert nothing == [""] * 4
        assert before == after != ""


def changed(path: Path, out: Path, factor: float, step: int) -> Path:
    """A copy of a checkpoint with its parameters multiplied."""
    checkpoint = load_checkpoint(path)
    for parameter in checkpoint.model.parameters():
        parameter.data.mul_(factor)
    return save(replace(checkpoint, progress={**checkpoint.progress, "step": step}), out)


def test_the_parameters_are_the_mean_and_the_progress_is_the_last(
    toy_checkpoint: Path, tmp_path: Path
) -> None:
    paths = [
        changed(toy_checkpoint, tmp_path / f"{step}.safetensors", factor, step)
        for factor, step in ((1.0, 10), (4.0, 30), (1.0, 20))
    ]
    out = tmp_path / "mean.safetensors"
    result = invoke(average, *paths, "--out", out)
    assert result.exit_code == 0, result.output
    mean, original = load_checkpoint(out), load_checkpoint(toy_checkpoint)
    doubled = [2 * parameter for parameter in original.model.parameters()]
    torch.testing.assert_close(list(mean.model.parameters()), doubled)
    assert mean.progress["step"] == 30
    assert mean.progress["averaged"] == [10, 20, 30]
    assert mean.source_tokenizer is mean.target_tokenizer

    again = toy_checkpoint, out, "--out", tmp_path / "again.safetensors"
    assert "mean.safetensors is an average already" in refusal(*again, command=average)
    assert "exists" in refusal(toy_checkpoint, "--out", out, command=average)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.decoder_units=32", "is of another model than"),
        ("vocabulary.size=120", "has another vocabulary than"),
        ("training.seed=9", "is of another run than .* by its training.seed: 9, not .*ensemble"),
        ("training.batch_tokens=250", "is of another run than .* by its training.batch_tokens: 250, not"),
    ],
)
def test_checkpoints_of_another_run_are_refused(
    toy_folder: Path, toy_checkpoint: Path, tmp_path: Path, override: str, message: str
) -> None:
    options = ["--set", override, "training.max_minutes=0.001"]
    run_training(toy_folder / "toy.toml", "--out", tmp_path, *options)
    with pytest.raises(CheckpointError, match=message):
        average_checkpoints([toy_checkpoint, tmp_path / "best.safetensors"], tmp_path / "x.safetensors")
    assert not (tmp_path / "x.safetensors").exists()


def test_a_step_does_not_count_twice(toy_checkpoint: Path, tmp_path: Path) -> None:
    last = changed(toy_checkpoint, tmp_path / "last.safetensors", 1.0, 30)
    kept = changed(toy_checkpoint, tmp_path / "step-30.safetensors", 1.0, 30)
    message = r"step-30\.safetensors is of step 30, as .*last\.safetensors is"
    with pytest.raises(CheckpointError, match=message):
        average_checkpoints([last, kept], tmp_path / "mean.safetensors")


def test_arrays_are_read_as_they_were_or_refused_with_their_name(tmp_path: Path) -> None:
    path = tmp_path / "numbers.npz"
    numbers = np.random.default_rng(1).integers(0, 50, 500)
    write_arrays(path, {"numbers": numbers})
    whole = path.read_bytes()
    refused = 0
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x5A]) + whole[place + 1 :])
        try:
            # The name of an array has no checksum.
            with suppress(KeyError):
                np.testing.assert_array_equal(read_arrays(path)["numbers"], numbers)
        except ValueError as error:
            refused += str(error).startswith("numbers.npz can't be read: ")
    assert refused > len(whole) // 7 * 0.8
