"""What a model card says of how its model was trained, with the commands that do it again."""

import dataclasses
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman_export.bundle_files import recipe_files
from dragoman_training.checkpoint import Checkpoint, path_tail
from dragoman_training.markdown import enumeration
from dragoman_training.recipe.data import DataConfig

ENSEMBLE = """An ensemble: in each step the normalised geometric mean of what its members say, trained apart.

"""


AGAIN = "this trains and exports the model again"
AGAIN_IF_ENDED = "this trains and exports the model again, provided that its training went to its end"
ALIKE = "this trains and exports one like it, though not the same"


def training_text(members: Sequence[Checkpoint]) -> str:
    """The card's part on training, in Markdown; `{export}` stands for the options of the export."""
    paragraphs, commands, checkpoints, promises = [], [], [], {AGAIN}
    for number, (file, member) in enumerate(zip(recipe_files(members), members, strict=True), start=1):
        progress, name = member.progress, member.recipe.name
        # Each run calls its best one the same: the run's folder tells them apart.
        run = f"runs/{name}" if len(members) == 1 else f"runs/{name}-{number}"
        paragraphs.append(f"- {_description(member)}; `{file}` holds every setting.")
        commands.append(_lines(f"{_train(progress)} {file} --out {run}", *_options(member)))
        checkpoint_file = _kept_as(member)
        promises.add({None: ALIKE, "best.safetensors": AGAIN_IF_ENDED}.get(checkpoint_file, AGAIN))
        averaged = progress.get("averaged")
        if averaged and len(averaged) <= member.recipe.training.keep_validated:
            checkpoint_file = "average.safetensors"
            commands.append(
                _lines("dragoman average", f"{run}/step-*.safetensors", f"--out {run}/{checkpoint_file}")
            )
        checkpoints.append(f"{run}/{checkpoint_file or 'best.safetensors'}")
    commands.append(_lines(f"dragoman export {' '.join(checkpoints)}", "{export} --force"))
    promise = next(candidate for candidate in (ALIKE, AGAIN_IF_ENDED, AGAIN) if candidate in promises)
    begun = any(member.recipe.training.start_from for member in members)
    needed = "the data, and the checkpoint that training began with," if begun else "the data"
    return f"""{ENSEMBLE if len(members) > 1 else ""}{chr(10).join(paragraphs)}

With {needed} in a folder whose full path is `$DATA`, {promise}:

```
{chr(10).join(commands)}
```"""


def _description(member: Checkpoint) -> str:
    """How far training went, and from where."""
    progress, start = member.progress, member.recipe.training.start_from
    averaged = progress.get("averaged")
    minutes = progress["seconds"] / 60
    return "".join(
        [
            f"{progress['step']:,} steps in {minutes:.{1 if minutes % 1 and minutes < 10 else 0}f} minutes",
            f" by {processes} processes" if (processes := _num_processes(progress)) > 1 else "",
            f", begun with the checkpoint {path_tail(start, 2)}" if start else "",
            f", the mean of the models after {enumeration([f'{step:,}' for step in averaged])} steps"
            if averaged
            else "",
        ]
    )


def _kept_as(member: Checkpoint) -> str | None:
    """The file in which the same training keeps this model; None where it may not come to it."""
    progress, config = member.progress, member.recipe.training
    if config.max_minutes or progress.get("changed"):
        return None  # How many steps that is, the machine decides; and no run in one stretch has both ways.
    if progress.get("device") != "cpu" or not progress.get("precision"):
        return None  # Numbers are the same again on CPUs, and in the precision that it was.
    if progress.get("averaged"):
        return None  # The same training keeps the last ones, and whether these are is not known.
    if progress.get("best_step") in (None, progress["step"]):
        return "best.safetensors"  # Of which nobody knows, while it is written, whether it stays the best.
    is_over = progress["epoch"] >= config.max_epochs or 0 < config.patience <= progress["stale"]
    return "last.safetensors" if is_over else None


def _train(progress: Mapping[str, Any]) -> str:
    processes = _num_processes(progress)
    if processes == 1:
        return "dragoman train"
    return f"torchrun --nproc-per-node {processes} -m dragoman_training"


def _num_processes(progress: Mapping[str, Any]) -> int:
    return progress.get("processes") or 1


def _options(member: Checkpoint) -> list[str]:
    """The options of `dragoman train` that say where each of a recipe's files is now, and what "auto" was.

    With data so named, training takes nothing of the card from the recipe.
    """
    recipe = member.recipe
    options = _data_options(recipe.data)
    options += [
        f"--set {shlex.quote(f'card.{key}={json.dumps(value, ensure_ascii=False)}')}"
        for key, value in dataclasses.asdict(recipe.card).items()
        if value and options
    ]
    if start := recipe.training.start_from:
        options.append(f'--set "training.start_from=$DATA/{path_tail(start, 2)}"')
    if recipe.training.precision == "auto" and (precision := member.progress.get("precision")):
        options.append(f"--set training.precision={precision}")
    return options


def _data_options(data: DataConfig) -> list[str]:
    options = []
    for field in dataclasses.fields(data):
        value = getattr(data, field.name)
        # Numbers that go with the files are in the recipe.
        if isinstance(value, tuple) and value and isinstance(value[0], str):
            are_told_apart = len({path_tail(path, 1) for path in value}) == len(value)
            paths = [f"$DATA/{path_tail(path, 1 if are_told_apart else 2)}" for path in value]
            files = paths[0] if len(paths) == 1 else "[" + ", ".join(f"'{path}'" for path in paths) + "]"
            options.append(f'--set "data.{field.name}={files}"')
    return options


def _lines(*parts: str) -> str:
    return " \\\n  ".join(parts)
