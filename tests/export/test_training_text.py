"""What a card says of training: commands that come to the very model, or no word that they do."""

from dataclasses import replace
from typing import Any

import pytest
from tests.export.toy_checkpoint import PROGRESS

from dragoman_export.trained import AGAIN, AGAIN_IF_ENDED, ALIKE, training_text
from dragoman_training.checkpoint import Checkpoint

ENDED = {"stale": 0, "epoch": 20, "best_step": 900}


def text_of(checkpoint: Checkpoint, progress: dict[str, Any], **training: Any) -> str:
    recipe = checkpoint.recipe
    return training_text(
        [
            replace(
                checkpoint,
                progress={**PROGRESS, **progress},
                recipe=replace(recipe, training=replace(recipe.training, **training)),
            )
        ]
    )


@pytest.mark.parametrize(
    ("progress", "training", "file", "promise"),
    [
        ({"best_step": 1200}, {}, "best", AGAIN_IF_ENDED),
        (ENDED, {}, "last", AGAIN),
        ({"best_step": 900, "stale": 5}, {"patience": 5}, "last", AGAIN),
    ],
)
def test_what_comes_to_the_same_model_is_said_to(
    luong: Checkpoint, progress: dict[str, Any], training: dict[str, Any], file: str, promise: str
) -> None:
    text = text_of(luong, progress, **training)
    assert f"{promise}:" in text
    assert f"dragoman export runs/toy/{file}.safetensors" in text


@pytest.mark.parametrize(
    ("progress", "training"),
    [
        ({"best_step": 900, "stale": 1}, {}),
        ({"best_step": 900, "stale": 5}, {"patience": 0}),
        ({"best_step": 1200}, {"max_minutes": 10.0}),
        ({"averaged": [800, 1200]}, {"keep_validated": 1}),
        ({"best_step": 1200, "changed": True}, {}),
        ({"best_step": 1200, "device": "cuda"}, {}),
        ({"best_step": 1200, "precision": None}, {}),
    ],
)
def test_what_may_not_come_to_the_same_model_is_not_said_to(
    luong: Checkpoint, progress: dict[str, Any], training: dict[str, Any]
) -> None:
    text = text_of(luong, progress, **training)
    assert AGAIN not in text
    assert ALIKE in text
    assert "dragoman export runs/toy/best.safetensors" in text


def test_a_mean_is_made_by_the_command_that_makes_it(luong: Checkpoint) -> None:
    text = text_of(luong, {"averaged": [800, 1000, 1200]}, keep_validated=3)
    assert "1,200 steps in 10 minutes, the mean of the models after 800, 1,000 and 1,200 steps" in text
    assert AGAIN not in text  # The run may have gone on, and then would not have kept these.
    command = """dragoman average \\
  runs/toy/step-*.safetensors \\
  --out runs/toy/average.safetensors
dragoman export runs/toy/average.safetensors"""
    assert command in text


def test_several_processes_train_it_again(luong: Checkpoint) -> None:
    text = text_of(luong, {"processes": 2})
    assert "1,200 steps in 10 minutes by 2 processes" in text
    assert "torchrun --nproc-per-node 2 -m dragoman_training recipe.toml --out runs/toy" in text
    assert "dragoman train recipe.toml --out runs/toy" in text_of(luong, {"processes": 1})
