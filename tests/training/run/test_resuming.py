"""What a resumed run may change, and what it is told of."""

from pathlib import Path

import pytest

from dragoman_training.recipe.reader import load_recipe
from dragoman_training.run.resuming import changed_around, changed_on_resuming
from dragoman_training.run.validation import Progress


@pytest.mark.parametrize(
    "override",
    ["clip_norm=2", "adam_betas=[0.9,0.9]", "weight_decay=0.1", "threads=2", "precision=bf16"],
)
def test_what_goes_on_in_another_way_is_told(toy_folder: Path, override: str) -> None:
    adamw = ("training.optimizer=adamw",)
    saved = load_recipe(toy_folder / "toy.toml", adamw)
    assert changed_on_resuming(saved, saved) == []
    (told,) = changed_on_resuming(
        saved, load_recipe(toy_folder / "toy.toml", (*adamw, f"training.{override}"))
    )
    assert told.startswith(f"training.{override.split('=')[0]} was ")
    assert "not be those of a run in one stretch" in told


@pytest.mark.parametrize("override", ["max_minutes=3", "patience=1", "max_epochs=1"])
def test_a_run_that_may_have_ended_elsewhere_first_is_told(toy_folder: Path, override: str) -> None:
    constant = ("training.decay=constant",)
    saved = load_recipe(toy_folder / "toy.toml", constant)
    (told,) = changed_on_resuming(
        saved, load_recipe(toy_folder / "toy.toml", (*constant, f"training.{override}"))
    )
    assert told.startswith(f"training.{override.split('=')[0]} was ")
    assert "validated as a run in one stretch may not" in told


def test_another_precision_that_auto_came_to_is_told() -> None:
    now = Progress(precision="fp32")
    (told,) = changed_around(Progress(precision="bf16"), now)
    assert told.startswith("it computed in bf16 and computes in fp32")
    assert changed_around(Progress(precision="fp32"), now) == []
    assert changed_around(Progress(precision=None), now) == []
