"""Training speed: both toolkits get the same task, and what they say is read right."""

from pathlib import Path

import click
import pytest

from benchmarks.train import joeynmt, ours
from benchmarks.train.shape import Material, Shape

LOG = """
INFO - joeynmt.model - Total params: 12526592
INFO - joeynmt.training - Epoch   1, Step:       10, Batch Loss:     8.1, Batch Acc: 0.0, Tokens per Sec:      123, Lr: 0.0
INFO - joeynmt.training - Epoch   1, Step:       20, Batch Loss:     7.9, Batch Acc: 0.0, Tokens per Sec:      456, Lr: 0.0
"""  # noqa: E501


def material(toy_folder: Path, folder: Path) -> Material:
    return Material(
        folder=folder,
        train_source=toy_folder / "train.de",
        train_target=toy_folder / "train.en",
        valid_source=toy_folder / "valid.de",
        valid_target=toy_folder / "valid.en",
        tokenizer=folder / "shared.spm",
        warmup_steps=3,
        steps=3,
        threads=1,
    )


def test_our_trainer_is_timed_over_the_steps_after_warm_up(toy_folder: Path, tmp_path: Path) -> None:
    files = material(toy_folder, tmp_path)
    ours.write_tokenizer(files, 60)
    shape = Shape(embedding_size=8, encoder_units=4, decoder_units=8, batch_tokens=200)
    timing = ours.run_here(shape, files)
    assert timing.tokens_per_second > 0
    assert timing.parameters > 60 * 8


def test_the_peer_gets_the_same_shape_and_files(toy_folder: Path, tmp_path: Path) -> None:
    shape = Shape(decoder_layers=3, batch_tokens=77)
    files = material(toy_folder, tmp_path)
    config = joeynmt.config_of(shape, files, tmp_path, tmp_path / "vocabulary.txt", shuffles=False)
    assert config["model"]["decoder"]["num_layers"] == 3  # type: ignore[index]
    assert config["model"]["encoder"]["hidden_size"] == shape.encoder_units  # type: ignore[index]
    assert config["training"]["batch_size"] == 77  # type: ignore[index]
    assert config["training"]["logging_freq"] == 3  # type: ignore[index]
    assert config["training"]["shuffle"] is False  # type: ignore[index]
    assert config["data"]["train"] == str(toy_folder / "train")  # type: ignore[index]


def test_the_peer_is_given_batches_of_one_length() -> None:
    lengths = [9, 2, 5, 3, 9, 2, 5, 3, 2]
    batches = joeynmt.batches_of_one_length(lengths, 9)
    assert [[lengths[number] for number in batch] for batch in batches] == [[2, 2, 2, 3], [3, 5], [5, 9], [9]]


def test_the_peers_speed_is_that_of_the_stretch_after_warm_up() -> None:
    timing = joeynmt.read_log(LOG)
    assert (timing.tokens_per_second, timing.parameters) == (456, 12526592)


def test_a_peer_that_did_not_train_is_an_error_with_what_it_said() -> None:
    with pytest.raises(click.ClickException, match="Invalid scheduler"):
        joeynmt.read_log("ConfigurationError: Invalid scheduler")
