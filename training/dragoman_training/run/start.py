"""Where a training begins that adapts a model to other text: another training's checkpoint."""

import dataclasses
from pathlib import Path

from dragoman_training.checkpoint import Checkpoint, CheckpointError, load_checkpoint
from dragoman_training.recipe.settings import Recipe


def load_start(recipe: Recipe, folder: Path) -> Checkpoint | None:
    """The checkpoint that `training.start_from` names, from `folder` on where it is relative; or None.

    Raises CheckpointError where its languages, model or vocabulary are not the recipe's, dropout aside, and
    OSError where it is not there.
    """
    if not recipe.training.start_from:
        return None
    path = folder / recipe.training.start_from
    start = load_checkpoint(path)
    theirs, ours = start.recipe.data.direction, recipe.data.direction
    if theirs != ours:
        raise CheckpointError(f"training.start_from: {path} translates {theirs}, the recipe {ours}")
    for table in ("model", "vocabulary"):
        begun, wanted = (dataclasses.asdict(getattr(compared, table)) for compared in (start.recipe, recipe))
        for key in (*begun, *wanted):
            if begun.get(key) != wanted.get(key) and key not in ("dropout", "max_pairs"):
                raise CheckpointError(
                    f"training.start_from: {path} has {table}.{key} {begun.get(key)!r}, the recipe "
                    f"{wanted.get(key)!r}; take its [model] and [vocabulary], where only dropout may differ"
                )
    return start
