"""JSON or TOML to frozen dataclasses and back, strictly: a key that is missing or unknown is an error.

A key may be missing where its dataclass gives a default. Knows nothing of bundles and recipes. Understands
str, int, float, bool, `X | None`, `int | str`, `Literal`, tuples, `Mapping[str, X]`, dataclasses, and unions
of dataclasses, which their first field tells apart.
"""

import ast
import dataclasses
import difflib
import inspect
import textwrap
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING
from typing import Any, Literal, TypeVar, cast

T = TypeVar("T")


class CodecError(ValueError):
    """A value that is not of the form its dataclass gives; the message begins with where it stands."""


class UnknownKeyError(CodecError):
    """A key that no field has. `hint` says which one may be meant."""

    def __init__(self, key: str, path: str, known: list[str]) -> None:
        self.key = key
        nearest = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
        self.is_near = bool(nearest)
        hint = f'did you mean "{_join(path, nearest[0])}"?' if nearest else f"known: {', '.join(known)}"
        # JSON can write what no text has.
        shown = _join(path, key).encode(errors="backslashreplace").decode()
        super().__init__(f'unknown key "{shown:.200}"; {hint}')


def encode(value: object) -> object:
    """The JSON form (dict, list, str, int, float, bool, None) of a dataclass value."""
    if dataclasses.is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    return value


def decode(type_: type[T], value: object, *, where: str = "", single: bool = False) -> T:
    """The dataclass value of a JSON form.

    `where` begins the dotted path in every error message. With `single` a list of one may be written as its
    item. Raises CodecError; what a dataclass raises of its values passes.
    """
    return cast(T, _Decoder(single).decode(type_, value, where))


class _Decoder:
    def __init__(self, single: bool) -> None:
        self._single = single

    def decode(self, type_: object, value: object, where: str) -> object:
        if dataclasses.is_dataclass(type_):
            return self._dataclass(cast(type, type_), value, where)
        origin, arguments = typing.get_origin(type_), typing.get_args(type_)
        if origin in (types.UnionType, typing.Union):
            return self._union(arguments, value, where)
        if origin is Literal:
            if value not in arguments:
                known = ", ".join(map(repr, arguments))
                raise CodecError(f"{where}: is {value!r:.80}, but must be one of {known}")
            return value
        if origin is tuple:
            return self._tuple(arguments, value, where)
        if origin is Mapping and isinstance(value, dict):
            return {
                _check_text(key, where): self.decode(arguments[1], item, _join(where, f"{key:.80}"))
                for key, item in value.items()
            }
        if type_ is float and type(value) in (int, float):
            try:
                return float(cast(float, value))
            except OverflowError:
                digits = len(str(value))
                raise CodecError(f"{where}: has {digits} digits, more than a number may have") from None
        if type(value) is type_:
            return _check_text(value, where) if isinstance(value, str) else value
        raise _wrong(type_, value, where)

    def _dataclass(self, type_: type, value: object, where: str) -> object:
        if not isinstance(value, dict):
            raise _wrong(type_, value, where)
        hints = typing.get_type_hints(type_)
        for key in value:
            if key not in hints:
                raise UnknownKeyError(key, where, list(hints))
        for field in dataclasses.fields(type_):
            if field.name not in value and field.default is MISSING and field.default_factory is MISSING:
                raise CodecError(f"{_join(where, field.name)}: is missing")
        given = [(name, hint) for name, hint in hints.items() if name in value]
        return type_(**{name: self.decode(hint, value[name], _join(where, name)) for name, hint in given})

    def _union(self, arguments: tuple[object, ...], value: object, where: str) -> object:
        if all(dataclasses.is_dataclass(argument) for argument in arguments):
            return self._dataclass(_told_apart(cast(tuple[type, ...], arguments), value, where), value, where)
        for argument in arguments:
            if value is None and argument is types.NoneType:
                return None
            try:
                return self.decode(argument, value, where)
            except CodecError:
                continue
        raise _wrong(typing.Union[arguments], value, where)  # noqa: UP007

    def _tuple(self, arguments: tuple[Any, ...], value: object, where: str) -> object:
        if not isinstance(value, list | tuple):
            if not self._single:
                raise _wrong(tuple, value, where)
            return self._tuple(arguments, [value], where)
        kinds = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else list(arguments)
        if len(kinds) != len(value):
            raise CodecError(f"{where}: must have {len(kinds)} values, not {len(value)}")
        items = enumerate(zip(kinds, value, strict=True))
        return tuple(self.decode(kind, item, f"{where}[{index}]") for index, (kind, item) in items)


def _told_apart(choices: tuple[type, ...], value: object, where: str) -> type:
    """The dataclass that a table is of, by the field whose only value names it."""
    name = next(iter(typing.get_type_hints(choices[0])))
    by_name = {getattr(choice, name): choice for choice in choices}
    given = value.get(name) if isinstance(value, dict) else None
    if given is None:
        raise CodecError(f"{_join(where, name)}: is missing; known are {', '.join(by_name)}")
    if given not in by_name:
        nearest = difflib.get_close_matches(str(given), list(by_name), n=1)
        hint = f'did you mean "{nearest[0]}"?' if nearest else f"known are {', '.join(by_name)}"
        raise CodecError(f'{_join(where, name)}: is "{given:.80}"; {hint}')
    return by_name[given]


def _check_text(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # JSON can write what no text has.
        raise CodecError(f"{where}: {text!r:.80} holds half a surrogate pair") from None
    return text


def _wrong(type_: object, value: object, where: str) -> CodecError:
    return CodecError(f"{where}: must be {_describe(type_)}, not {value!r:.80}")


def _describe(type_: object) -> str:
    origin = typing.get_origin(type_) or type_
    if origin in (types.UnionType, typing.Union):
        return " or ".join(_describe(argument) for argument in typing.get_args(type_))
    names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    names |= {tuple: "a list", Mapping: "a table", types.NoneType: "null"}
    return "a table" if dataclasses.is_dataclass(origin) else names.get(cast(type, origin), str(origin))


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def field_docstrings(config: type[Any]) -> dict[str, str]:
    """The docstring under each field, those of base classes included, on one line.

    Raises ValueError, naming the field, where one has none.
    """
    meanings: dict[str, str] = {}
    for cls in reversed(config.__mro__[:-1]):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        assert isinstance(body, ast.ClassDef)
        for field, below in zip(body.body, [*body.body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                if not (isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)):
                    raise ValueError(f"{cls.__name__}.{field.target.id} has no docstring")
                meanings[field.target.id] = " ".join(str(below.value.value).split())
    return meanings
