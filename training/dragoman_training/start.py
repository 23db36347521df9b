"""Where a training begins that adapts a model to other text: another training's checkpoint."""

import dataclasses
from pathlib import Path

from dragoman_training.checkpoint import Checkpoint, CheckpointError, load_checkpoint
from dragoman_training.recipe import Recipe


def load_start(recipe: Recipe, folder: Path) -> Checkpoint | None:
    """The checkpoint that `training.start_from` names, from `folder` on where it is relative; or None.

    Raises CheckpointError where its languages, model or vocabulary are not the recipe's, dropout aside, and
    OSError where it is not there.
    """
    if not recipe.training.start_from:
        return None
    path = folder / recipe.training.start_from
    start = load_checkpoint(path)
    pairs = [(each.data.source_language, each.data.target_language) for each in (start.recipe, recipe)]
    if pairs[0] != pairs[1]:
        told = [f'"{source}" to "{target}"' for source, target in pairs]
        raise CheckpointError(f"training.start_from: {path} translates {told[0]}, the recipe {told[1]}")
    for table in ("model", "vocabulary"):
        theirs, ours = (dataclasses.asdict(getattr(each, table)) for each in (start.recipe, recipe))
        for key in (*theirs, *ours):
            if theirs.get(key) != ours.get(key) and key != "dropout":
                raise CheckpointError(
                    f"training.start_from: {path} has {table}.{key} {theirs.get(key)!r}, the recipe "
                    f"{ours.get(key)!r}; take its [model] and [vocabulary], where only dropout may differ"
                )
    return start
