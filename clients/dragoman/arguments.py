"""Checks of the numbers that a caller gives."""

import math
from numbers import Integral, Real
from typing import get_args

from dragoman.errors import FieldViolation, InvalidRequestError


def check_count(value: object, name: str) -> None:
    """Raises TypeError for what is no integer, InvalidRequestError for one that the wire cannot carry."""
    if not isinstance(value, Integral):
        raise TypeError(f"{name} is {type(value).__name__}, not int")
    if not 1 <= int(value) < 2**32:
        raise invalid(name, f"is {value}; it must be {'at least 1' if int(value) < 1 else 'below 2**32'}")


def check_number(value: object, name: str) -> None:
    """Raises TypeError for what is no number, InvalidRequestError for nan."""
    if not isinstance(value, Real):
        raise TypeError(f"{name} is {type(value).__name__}, not float")
    if math.isnan(value):
        raise invalid(name, "is nan, not a number")


def check_choice(value: object, choices: object, name: str) -> None:
    """Raises InvalidRequestError for what is no value of a Literal; None leaves the choice to others."""
    if value is not None and value not in get_args(choices):
        raise invalid(name, f"is {value!r}; it must be one of {', '.join(get_args(choices))}")


def invalid(field: str, description: str) -> InvalidRequestError:
    """The error of one argument."""
    violation = FieldViolation(field=field, description=description)
    return InvalidRequestError(f"{field} {description}", violations=(violation,))
