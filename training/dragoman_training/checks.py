"""Bounds of a config's fields; what breaks them is named as a recipe names it."""

import dataclasses
import math
from typing import Any


def require_at_least(config: object, table: str, **least: float) -> None:
    """Raises ValueError for the first field below its least value, or that is no number."""
    for name, minimum in least.items():
        if not getattr(config, name) >= minimum:
            raise ValueError(f"{table}.{name} is {getattr(config, name)}, but must be at least {minimum}")


def require_at_most(config: object, table: str, **most: float) -> None:
    """Raises ValueError for the first field above its largest value, or that is no number."""
    for name, maximum in most.items():
        if not getattr(config, name) <= maximum:
            raise ValueError(f"{table}.{name} is {getattr(config, name)}, but must be at most {maximum}")


def require_default(config: Any, table: str, *names: str, because: str) -> None:
    """Raises ValueError for the first field that was set though it changes nothing; `because` says why."""
    defaults = {field.name: field.default for field in dataclasses.fields(config)}
    for name in names:
        if getattr(config, name) != defaults[name]:
            key = f"{table}.{name} is {getattr(config, name)}"
            raise ValueError(f"{key}, but changes nothing: {because}; leave it out")


def require_positive(config: object, table: str, *names: str) -> None:
    """Raises ValueError for the first field that is not above 0, or not finite."""
    for name in names:
        if not 0 < getattr(config, name) < math.inf:
            raise ValueError(f"{table}.{name} is {getattr(config, name)}, but must be above 0")


def require_share(config: object, table: str, *names: str) -> None:
    """Raises ValueError for the first field that is not at least 0 and below 1."""
    for name in names:
        if not 0 <= getattr(config, name) < 1:
            raise ValueError(f"{table}.{name} is {getattr(config, name)}, but must be at least 0 and below 1")
