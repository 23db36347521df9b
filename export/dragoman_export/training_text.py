"""What a model card says of how its model was trained, with the commands that do it again."""

import dataclasses
from collections.abc import Sequence
from pathlib import PurePath

from dragoman_export.recipe_file import recipe_files
from dragoman_training.checkpoint import Checkpoint
from dragoman_training.recipe import DataConfig

ENSEMBLE = """An ensemble: in each step the normalised geometric mean of what its members say, trained apart.

"""


def training_text(members: Sequence[Checkpoint]) -> str:
    """The card's part on training, in Markdown; `{export}` stands for the options of the export."""
    told, trainings, checkpoints = [], [], []
    for number, (file, member) in enumerate(zip(recipe_files(members), members, strict=True), start=1):
        progress, name = member.progress, member.recipe.name
        run = f"runs/{name}" if len(members) == 1 else f"runs/{name}-{number}"
        minutes = f"{progress['seconds'] / 60:.0f} minutes"
        # Each run calls its best one the same: the run's folder tells them apart.
        start = _tail(member.recipe.training.start_from, 2)
        begun = f", begun with the checkpoint {start}" if start else ""
        told.append(f"- {progress['step']:,} steps in {minutes}{begun}; `{file}` holds every setting.")
        options = _data_options(member.recipe.data)
        if start:
            options.append(f'--set "training.start_from=$DATA/{start}"')
        trainings.append(_lines(f"dragoman train {file} --out {run}", *options))
        checkpoints.append(f"{run}/best.safetensors")
    commands = [*trainings, _lines(f"dragoman export {' '.join(checkpoints)}", "{export} --force")]
    return f"""{ENSEMBLE if len(members) > 1 else ""}{chr(10).join(told)}

With the data in a folder whose full path is `$DATA`, this trains and exports the model again:

```
{chr(10).join(commands)}
```"""


def _data_options(data: DataConfig) -> list[str]:
    """The options of `dragoman train` that say where each of a recipe's files is now."""
    options = []
    for field in dataclasses.fields(data):
        value = getattr(data, field.name)
        if isinstance(value, tuple) and value:
            are_told_apart = len({_tail(path, 1) for path in value}) == len(value)
            paths = [f"$DATA/{_tail(path, 1 if are_told_apart else 2)}" for path in value]
            told = paths[0] if len(paths) == 1 else "[" + ", ".join(f"'{path}'" for path in paths) + "]"
            options.append(f'--set "data.{field.name}={told}"')
    return options


def _tail(path: str, num_parts: int) -> str:
    """The last parts of a path, those that name nothing left out."""
    return "/".join([part for part in PurePath(path).parts if part not in ("..", "/")][-num_parts:])


def _lines(*parts: str) -> str:
    return " \\\n  ".join(parts)
