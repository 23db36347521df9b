"""The reference of recipes in docs/reference/recipes.md, written from the settings' own docstrings.

`python -m dragoman_training.recipe.reference > docs/reference/recipes.md`
"""

import dataclasses
import inspect
import json
import typing
from typing import Any, Literal

from dragoman_bundle.codec import field_docstrings

from dragoman_training.models import ModelConfig
from dragoman_training.recipe.reader import tables
from dragoman_training.recipe.settings import Recipe

HEAD = """# Recipes

A recipe is a TOML file that says everything about a training run. Keys that are not here are errors; keys
that are left out take the default. `dragoman train RECIPE.toml --set training.seed=2` overrides one.

This page is written by `python -m dragoman_training.recipe.reference > docs/reference/recipes.md`.
"""


def reference() -> str:
    """Every key of every table with its type, default and meaning, as Markdown."""
    parts = [HEAD, "## At the top\n", _table(Recipe)]
    for name, config in tables():
        of_family = f' with `family = "{config.family}"`' if name == "model" else ""
        meaning = inspect.cleandoc(config.__doc__ or "")
        parts += [f"## `[{name}]`{of_family}\n", f"{meaning}\n", _table(config)]
    return "\n".join(parts)


def _table(config: type[Any]) -> str:
    hints, meanings = typing.get_type_hints(config), field_docstrings(config)
    lines = ["| key | values | default | |", "| --- | --- | --- | --- |"]
    for field in dataclasses.fields(config):
        kind = hints[field.name]
        if kind == ModelConfig or dataclasses.is_dataclass(kind):
            continue  # A table of its own.
        default = "" if field.default is dataclasses.MISSING else f"`{_toml(field.default)}`"
        values = _values(kind).replace("|", "\\|")
        lines.append(f"| `{field.name}` | {values} | {default} | {meanings[field.name]} |")
    return "\n".join(lines) + "\n"


def _values(kind: Any) -> str:
    arguments = typing.get_args(kind)
    match typing.get_origin(kind):
        case None:
            names = {str: "text", bool: "true, false", int: "whole number", float: "number"}
            return names[kind]
        case origin if origin is Literal:
            return ", ".join(f"`{_toml(value)}`" for value in arguments)
        case _:
            count = "" if arguments[-1] is Ellipsis else f"{len(arguments)} of "
            return f"list of {count}{_values(arguments[0])}"


def _toml(value: object) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


if __name__ == "__main__":
    print(reference(), end="")
