"""`dragoman average`: the mean of checkpoints of one run, and nothing else."""

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from dragoman_training.average import average, average_checkpoints
from dragoman_training.checkpoint import CheckpointError, load_checkpoint, write_checkpoint


def changed(path: Path, out: Path, factor: float, step: int) -> Path:
    """A copy of a checkpoint with its parameters multiplied."""
    checkpoint = load_checkpoint(path)
    write_checkpoint(
        out,
        checkpoint.recipe,
        (checkpoint.source_tokenizer, checkpoint.target_tokenizer),
        {f"model.{name}": value * factor for name, value in checkpoint.model.named_parameters()},
        {**checkpoint.progress, "step": step},
    )
    return out


def test_the_parameters_are_the_mean_and_the_progress_is_the_last(
    toy_checkpoint: Path, tmp_path: Path
) -> None:
    paths = [
        changed(toy_checkpoint, tmp_path / f"{step}.safetensors", factor, step)
        for factor, step in ((1.0, 10), (4.0, 30), (1.0, 20))
    ]
    out = tmp_path / "mean.safetensors"
    result = CliRunner().invoke(average, [*map(str, paths), "--out", str(out)])
    assert result.exit_code == 0, result.output
    mean, original = load_checkpoint(out), load_checkpoint(toy_checkpoint)
    for ours, theirs in zip(mean.model.parameters(), original.model.parameters(), strict=True):
        torch.testing.assert_close(ours, 2 * theirs)
    assert mean.progress["step"] == 30
    assert mean.progress["averaged"] == [10, 20, 30]
    assert mean.source_tokenizer is mean.target_tokenizer


def test_an_average_is_not_averaged_again(toy_checkpoint: Path, tmp_path: Path) -> None:
    out = tmp_path / "mean.safetensors"
    average_checkpoints([toy_checkpoint], out)
    with pytest.raises(CheckpointError, match=r"mean\.safetensors is an average already"):
        average_checkpoints([toy_checkpoint, out], tmp_path / "again.safetensors")


def test_a_file_that_is_there_is_not_overwritten(toy_checkpoint: Path) -> None:
    result = CliRunner().invoke(average, [str(toy_checkpoint), "--out", str(toy_checkpoint)])
    assert isinstance(result.exception, ValueError)
    assert "exists" in str(result.exception)


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
    from dragoman_training.cli import train

    options = ["--set", override, "--set", "training.max_minutes=0.001"]
    result = CliRunner().invoke(train, [str(toy_folder / "toy.toml"), "--out", str(tmp_path), *options])
    assert result.exit_code == 0, result.output
    with pytest.raises(CheckpointError, match=message):
        average_checkpoints([toy_checkpoint, tmp_path / "best.safetensors"], tmp_path / "x.safetensors")
    assert not (tmp_path / "x.safetensors").exists()


def test_a_step_does_not_count_twice(toy_checkpoint: Path, tmp_path: Path) -> None:
    last = changed(toy_checkpoint, tmp_path / "last.safetensors", 1.0, 30)
    kept = changed(toy_checkpoint, tmp_path / "step-30.safetensors", 1.0, 30)
    with pytest.raises(
        CheckpointError, match=r"step-30\.safetensors is of step 30, as .*last\.safetensors is"
    ):
        average_checkpoints([last, kept], tmp_path / "mean.safetensors")
