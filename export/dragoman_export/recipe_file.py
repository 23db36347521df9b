"""A checkpoint's recipe as the TOML file that trains it again."""

import dataclasses
import json
from collections.abc import Sized
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman_training.recipe.settings import Recipe


def recipe_files(members: Sized) -> list[str]:
    """Names of the recipes in a bundle: one, or one for each member of an ensemble."""
    if len(members) == 1:
        return ["recipe.toml"]
    return [f"recipe-{number}.toml" for number in range(1, len(members) + 1)]


def recipe_toml(recipe: "Recipe") -> str:
    """The recipe as TOML: `load_recipe` makes the same recipe of it."""
    lines: list[str] = []
    tables: list[str] = []
    for name, value in dataclasses.asdict(recipe).items():
        if isinstance(value, dict):
            settings = [f"{key} = {_toml(setting)}" for key, setting in value.items()]
            tables.append("\n".join([f"[{name}]", *settings]))
        else:
            lines.append(f"{name} = {_toml(value)}")
    return "\n\n".join(["\n".join(lines), *tables]) + "\n"


def _toml(value: Any) -> str:
    """A string, number, truth value or list of these; JSON's forms of them are TOML's too."""
    if isinstance(value, float):
        return repr(value)
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
