"""Recipes from TOML, read strictly: a key that no one reads is an error, never ignored."""

import copy
import dataclasses
import tomllib
import typing
from contextlib import suppress
from datetime import date, time
from pathlib import Path
from typing import Any

from dragoman_bundle.codec import UnknownKeyError, decode
from dragoman_bundle.languages import check_language_tag

from dragoman_training.models import ModelConfig
from dragoman_training.recipe.data import RecipeError
from dragoman_training.recipe.settings import Recipe

FAMILIES: dict[str, type[ModelConfig]] = {kind.family: kind for kind in typing.get_args(ModelConfig)}

TRAINING_DATA = ("train_source", "train_target", "train_tsv")
"""How the keys of [data] begin that say what is trained on."""


def tables() -> list[tuple[str, type[Any]]]:
    """A recipe's tables by name, in its order; of [model] one for each family."""
    found: list[tuple[str, type[Any]]] = []
    for name, kind in typing.get_type_hints(Recipe).items():
        if kind == ModelConfig:
            found += [(name, config) for config in FAMILIES.values()]
        elif dataclasses.is_dataclass(kind):
            found.append((name, typing.cast(type[Any], kind)))
    return found


FORMER_KEYS = ("hugging_face", "hugging_face_config")
"""Keys of [data] in recipes of earlier versions, which are read where they say nothing."""


def load_recipe(path: Path, overrides: tuple[str, ...] = ()) -> Recipe:
    """Reads a recipe file and applies `key.subkey=value` overrides, values written as in TOML.

    Where they name other training data, the recipe's [card] is not of it: only what they set there counts.
    Raises LanguageTagError for a language that is no tag; RecipeError for what is not TOML, for unknown keys
    (naming the nearest known one), for values of the wrong type or out of range; OSError for no such file.
    """
    table = _read(path)
    if name_other_data(path, overrides):
        table.pop("card", None)
    recipe = recipe_from_table(_overridden(table, overrides))
    # Here rather than in the recipe itself: a checkpoint that was trained with another one can still be read.
    for key in ("source_language", "target_language"):
        if language := getattr(recipe.data, key):
            check_language_tag(f"data.{key}", language)
    return recipe


def name_other_data(path: Path, overrides: tuple[str, ...]) -> bool:
    """Whether overrides name other training data than the recipe file does."""
    table = _read(path)
    return _training_data(_overridden(table, overrides)) != _training_data(table)


def has_card(path: Path) -> bool:
    """Whether the recipe file says anything of its data and model."""
    return bool(_read(path).get("card"))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: not a TOML file: {error}") from error


def _overridden(table: dict[str, Any], overrides: tuple[str, ...]) -> dict[str, Any]:
    table = copy.deepcopy(table)
    for override in overrides:
        _apply_override(table, override)
    return table


def _training_data(table: dict[str, Any]) -> dict[str, Any]:
    """What a recipe's tables say of what is trained on."""
    data = table.get("data")
    items = data.items() if isinstance(data, dict) else ()
    return {key: value for key, value in items if key.startswith(TRAINING_DATA)}


def recipe_from_table(table: dict[str, Any]) -> Recipe:
    """A recipe from nested tables, as TOML or a checkpoint holds it. Raises RecipeError."""
    if isinstance(data := table.get("data"), dict):
        known = {key: value for key, value in data.items() if key not in FORMER_KEYS or value}
        table = {**table, "data": known}
    try:
        return decode(Recipe, table, single=True)
    except UnknownKeyError as error:
        keys = [f"{name}.{field.name}" for name, config in tables() for field in dataclasses.fields(config)]
        elsewhere = [key for key in keys if key.rpartition(".")[2] == error.key]
        hint = f'; did you mean "{elsewhere[0]}"?' if elsewhere and not error.is_near else ""
        raise RecipeError(f"{error}{hint}") from error
    except RecipeError:
        raise
    except ValueError as error:
        raise RecipeError(str(error)) from error


def _apply_override(table: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals:
        raise RecipeError(f'override "{override}" is not of the form key=value')
    value: Any = text
    with suppress(tomllib.TOMLDecodeError):
        value = tomllib.loads(f"value = {text}")["value"]
    if isinstance(value, date | time):
        # No setting is one, but a name may look like one.
        value = text
    *parents, last = key.strip().split(".")
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise RecipeError(f'override "{override}": {parent} is not a table')
    table[last] = value
