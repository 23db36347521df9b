"""One training at a time writes to a folder, and none over another's checkpoints."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from dragoman_training.cli import train
from dragoman_training.run.run_folder import claimed, left_by_another


def test_a_folder_is_held_by_one(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with claimed(folder):
        (folder / "last.safetensors").touch()
        with pytest.raises(ValueError, match=r"another training is writing to .*run"), claimed(folder):
            pytest.fail("the block must not run")
    with claimed(folder):
        assert (folder / "last.safetensors").exists()


def test_a_run_that_wrote_nothing_leaves_no_folder(toy_folder: Path, tmp_path: Path) -> None:
    options = ["--out", str(tmp_path / "runs" / "run"), "--set", "data.train_source=nowhere"]
    result = CliRunner().invoke(train, [str(toy_folder / "toy.toml"), *options])
    assert "nowhere" in str(result.exception)
    assert not (tmp_path / "runs" / "run").exists()


def test_one_set_takes_several_values(toy_folder: Path, tmp_path: Path) -> None:
    recipe, out = str(toy_folder / "toy.toml"), ["--out", str(tmp_path / "run")]
    values = ["training.seed=2", "data.train_source=nowhere", "model.dropout=7"]
    for most in (2, 3):
        result = CliRunner().invoke(train, [recipe, *out, "--set", *values[:most]])
        assert ("nowhere" if most == 2 else "dropout is 7") in str(result.exception)
    result = CliRunner().invoke(train, [recipe, "second.toml", *out])
    assert "'second.toml' is no KEY=VALUE" in result.output
    # Which of the two is meant nobody knows.
    result = CliRunner().invoke(train, [recipe, *out, "--set", "name=a", "--set", "name=b"])
    assert "name is set twice" in result.output
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "way"),
    [("last.safetensors", "--resume"), ("best.safetensors", "--out"), ("step-40.safetensors", "--out")],
)
def test_what_another_run_left_is_not_written_over(
    toy_folder: Path, tmp_path: Path, name: str, way: str
) -> None:
    assert left_by_another(tmp_path) is None
    (tmp_path / name).write_bytes(b"a model")
    result = CliRunner().invoke(train, [str(toy_folder / "toy.toml"), "--out", str(tmp_path)])
    assert isinstance(result.exception, ValueError)
    assert f"{name} exists" in str(result.exception)
    assert way in str(result.exception)
    assert (tmp_path / name).read_bytes() == b"a model"
