"""JSON to frozen dataclasses and back, strictly: a key that is missing or unknown is an error that names it.
A key may be missing where its dataclass gives a default.

Knows nothing of bundles. Understands str, int, float, bool, `X | None`, `int | str`, `tuple[X, ...]`,
`Mapping[str, X]` and dataclasses of these.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import TypeVar, cast

T = TypeVar("T")


class CodecError(ValueError):
    """A JSON value that is not of the form its dataclass gives; the message begins with where it stands."""


def encode(value: object) -> object:
    """The JSON form (dict, list, str, int, float, bool, None) of a dataclass value."""
    if dataclasses.is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    return value


def decode(type_: type[T], value: object, *, where: str) -> T:
    """The dataclass value of a JSON form. `where` begins every error message. Raises CodecError."""
    return cast(T, _decode(type_, value, where))


def _decode(type_: object, value: object, where: str) -> object:
    if dataclasses.is_dataclass(type_):
        return _decode_dataclass(cast(type, type_), value, where)
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin in (types.UnionType, typing.Union):
        return _decode_union(arguments, value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(_decode(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if origin is Mapping and isinstance(value, dict):
        return {
            _check_text(key, where): _decode(arguments[1], item, f"{where}.{key:.80}")
            for key, item in value.items()
        }
    if type_ is float and type(value) in (int, float):
        try:
            return float(cast(float, value))
        except OverflowError:
            raise CodecError(f"{where}: {value!r:.80} is too large") from None
    if type(value) is type_:
        return _check_text(value, where) if isinstance(value, str) else value
    raise CodecError(f"{where}: expected {_describe(type_)}, got {value!r:.80}")


def _check_text(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # JSON can write what no text has.
        raise CodecError(f"{where}: {text!r:.80} holds half a surrogate pair") from None
    return text


def _decode_dataclass(type_: type, value: object, where: str) -> object:
    if not isinstance(value, dict):
        raise CodecError(f"{where}: expected an object, got {value!r:.80}")
    hints = typing.get_type_hints(type_)
    if unknown := sorted(value.keys() - hints.keys()):
        raise CodecError(f"{where}: unknown key {unknown[0]!r:.80}; known are {', '.join(hints)}")
    needed = [field.name for field in dataclasses.fields(type_) if field.default is dataclasses.MISSING]
    if missing := [name for name in needed if name not in value]:
        raise CodecError(f"{where}: key {missing[0]!r} is missing")
    return type_(
        **{
            name: _decode(hint, value[name], f"{where}.{name}")
            for name, hint in hints.items()
            if name in value
        }
    )


def _decode_union(arguments: tuple[object, ...], value: object, where: str) -> object:
    for argument in arguments:
        if value is None and argument is types.NoneType:
            return None
        try:
            return _decode(argument, value, where)
        except CodecError:
            continue
    expected = " or ".join(_describe(argument) for argument in arguments)
    raise CodecError(f"{where}: expected {expected}, got {value!r:.80}")


def _describe(type_: object) -> str:
    origin = typing.get_origin(type_)
    if origin is tuple:
        return "a list"
    if origin is Mapping:
        return "an object"
    return "null" if type_ is types.NoneType else getattr(type_, "__name__", str(type_))
