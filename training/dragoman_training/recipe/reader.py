"""Recipes from TOML, read strictly: a key that no one reads is an error, never ignored."""

import copy
import dataclasses
import difflib
import tomllib
import typing
from collections.abc import Sequence
from datetime import date, time
from pathlib import Path
from typing import Any, Literal

from dragoman_bundle.language_tags import check_language_tag

from dragoman_training.models import ModelConfig
from dragoman_training.recipe.settings import Recipe, RecipeError

FAMILIES: dict[str, type[ModelConfig]] = {each.family: each for each in typing.get_args(ModelConfig)}

TRAINING_DATA = ("train_source", "train_target", "train_tsv", "hugging_face")
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


def load_recipe(path: Path, overrides: tuple[str, ...] = ()) -> Recipe:
    """Reads a recipe file and applies `key.subkey=value` overrides, values written as in TOML.

    Where they name other training data, the recipe's [card] is not of it: only what they set there counts.
    Raises LanguageTagError for a language that is no tag; RecipeError for what is not TOML, for unknown keys
    (naming the nearest known one), for values of the wrong type or out of range; OSError where the file can't
    be read.
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
    if not isinstance(data, dict):
        return {}
    return {key: value for key, value in data.items() if key.startswith(TRAINING_DATA)}


def recipe_from_table(table: dict[str, Any]) -> Recipe:
    """A recipe from nested tables, as TOML or a checkpoint holds it. Raises RecipeError."""
    recipe: Recipe = _build(Recipe, table, where="")
    return recipe


def _apply_override(table: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals:
        raise RecipeError(f'override "{override}" is not of the form key=value')
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    if isinstance(value, date | time):
        # No setting is one, but a name may look like one.
        value = text
    *parents, last = key.strip().split(".")
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise RecipeError(f'override "{override}": {parent} is not a table')
    table[last] = value


def _build(cls: type[Any], table: object, *, where: str) -> Any:
    """Builds a dataclass from a table; `where` is the dotted key it stands at."""
    if not isinstance(table, dict):
        raise RecipeError(f"{where}: must be a table, not {table!r}")
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for key in table:
        if key not in fields:
            elsewhere = [_join(name, key) for name, config in tables() if _has_key(config, key)]
            raise RecipeError(
                _unknown(key, list(fields), what="unknown key", where=where, elsewhere=elsewhere)
            )
    values = {key: _convert(hints[key], value, where=_join(where, key)) for key, value in table.items()}
    for name, known in fields.items():
        optional = (
            known.default is not dataclasses.MISSING or known.default_factory is not dataclasses.MISSING
        )
        if name not in values and not optional:
            raise RecipeError(f"{_join(where, name)}: is missing")
    try:
        return cls(**values)
    except RecipeError:
        raise
    except ValueError as error:
        raise RecipeError(str(error)) from error


def _convert(kind: Any, value: object, *, where: str) -> Any:
    """A TOML value as the field's type; raises RecipeError where it is of another."""
    if kind == ModelConfig:
        return _build_model_config(value, where=where)
    if dataclasses.is_dataclass(kind):
        return _build(typing.cast(type[Any], kind), value, where=where)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        if value not in arguments:
            raise RecipeError(f"{where}: is {value!r}, but must be one of {', '.join(map(repr, arguments))}")
        return value
    if origin is tuple:
        items = value if isinstance(value, list | tuple) else [value]
        variadic = arguments[-1] is Ellipsis
        if not variadic and len(items) != len(arguments):
            raise RecipeError(f"{where}: must have {len(arguments)} values, not {len(items)}")
        kinds = [arguments[0]] * len(items) if variadic else arguments
        return tuple(_convert(each, item, where=where) for each, item in zip(kinds, items, strict=True))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError as error:
            raise RecipeError(
                f"{where}: has {len(str(value))} digits, more than a number may have"
            ) from error
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise RecipeError(f"{where}: is {value!r}, but must be of type {kind.__name__}")
    return value


def _has_key(config: type[Any], key: str) -> bool:
    return key in {field.name for field in dataclasses.fields(config)}


def _build_model_config(value: object, *, where: str) -> ModelConfig:
    family = value.get("family") if isinstance(value, dict) else None
    if not isinstance(family, str):
        raise RecipeError(f"{where}.family: is missing; known families: {', '.join(FAMILIES)}")
    if family not in FAMILIES:
        raise RecipeError(_unknown(family, list(FAMILIES), what=f"{where}.family"))
    config: ModelConfig = _build(FAMILIES[family], value, where=where)
    return config


def _unknown(
    name: str, known: list[str], *, what: str, where: str = "", elsewhere: Sequence[str] = ()
) -> str:
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if nearest:
        hint = f'did you mean "{_join(where, nearest[0])}"?'
    else:
        hint = f"known: {', '.join(known)}"
        if elsewhere:
            hint += f'; did you mean "{elsewhere[0]}"?'
    return f'{what} "{_join(where, name)}"; {hint}'


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
