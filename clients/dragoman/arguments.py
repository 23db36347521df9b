"""Checks of what a caller gives: numbers, choices and texts."""

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Self, get_args

from dragoman.errors import FieldViolation, InvalidRequestError
from dragoman.translation import Key
from dragoman_files.format import UnitError
from dragoman_files.texts import RangedText


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


MAX_DETECTION_CHARACTERS = 1_000
"""Maximum of characters by which a language is detected: the beginning of a text tells it."""
MAX_STREAM_TEXT_BYTES = (4 << 20) - 1024
"""Most bytes of a text of a stream: a longer one, in a message, is over the 4 MiB that gRPC servers take by
default, which would end the stream for all."""


def check_text(text: object, field: str) -> str:
    """The text, if it can travel.

    Raises TypeError for what is no string, InvalidRequestError for one with a lone surrogate.
    """
    if not isinstance(text, str):
        raise TypeError(f"{field} is {type(text).__name__}, not str")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        description = f"has a lone surrogate at code point {error.start}, which UTF-8 cannot carry"
        raise invalid(field, description) from None
    return text


def check_stream_text(text: object, field: str) -> str:
    """The text, if it can travel in a stream.

    Raises TypeError for what is no string, InvalidRequestError for one with a lone surrogate or too long.
    """
    checked = check_text(text, field)
    if (size := len(checked.encode())) > MAX_STREAM_TEXT_BYTES:
        description = f"has {size} bytes; at most {MAX_STREAM_TEXT_BYTES} can travel in one message"
        raise invalid(field, description)
    return checked


def check_pair(pair: tuple[Key, str]) -> tuple[Key, str]:
    """The pair. Raises TypeError for a bare text, of which a short one would pass for a pair."""
    if isinstance(pair, str | bytes):
        raise TypeError(
            f"a stream takes pairs (id, text), not texts: write enumerate(texts); got {pair[:20]!r}"
        )
    return pair


def check_text_pairs(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Texts with their translations, each checked. Raises TypeError for what is no pair of texts."""
    checked = []
    for position, pair in enumerate(pairs):
        if isinstance(pair, str | bytes) or len(pair) != 2:
            raise TypeError(f"pairs[{position}] is no pair (text, translation): {pair!r:.40}")
        fields = f"pairs[{position}].source", f"pairs[{position}].target"
        checked.append((check_text(pair[0], fields[0]), check_text(pair[1], fields[1])))
    return checked


def check_texts(texts: Iterable[str]) -> list[str]:
    """The texts as a list, each checked. Raises TypeError for one string in place of many."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"texts must be a list of strings, not one string: write [{texts[:20]!r}]")
    return [check_text(text, f"texts[{position}]") for position, text in enumerate(texts)]


class ProtectedText(RangedText):
    """A text, for any call that takes texts, with ranges of it that are not translated.

    ProtectedText("Herr Grün mag grün.", [(5, 9)])
    """

    __slots__ = ()

    def __new__(cls, text: str, protected_ranges: Iterable[tuple[int, int]]) -> Self:
        """Raises TypeError for what is no range, InvalidRequestError for one that is not in the text."""
        try:
            return super().__new__(cls, text, protected_ranges)
        except UnitError as error:
            raise invalid("protected_ranges", str(error).removeprefix("protected_ranges ")) from None
