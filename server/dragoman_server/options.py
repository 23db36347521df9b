"""Options, each written once: a field of a frozen dataclass, with its range beside it and its meaning below.

The command's options, the environment variables, what is refused and the page of all options come from it.
"""

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import click
from dragoman_bundle.codec import field_docstrings

_KEY = "option"


class MissingExtraError(ImportError):
    """An option needs libraries that are not installed."""


def missing_extra(option: str, error: ImportError, *extras: str) -> MissingExtraError:
    """The error for a missing module, with the extra that installs it.

    A whole package of ours may be left out of an image; a module missing within one is a bug: raises `error`.
    """
    name = error.name or ""
    if name.startswith("dragoman") and "." in name:
        raise error
    return MissingExtraError(
        f"{option} needs {name}, which is not installed: run `make install` in the source checkout, or there "
        f"`pip install --constraint constraints.txt --editable '.[{','.join(extras)}]'`"
    )


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The option of a field: its range, and how the command line differs from it."""

    at_least: float | None = None
    above: float | None = None
    """The bound that every value is above."""
    at_most: float | None = None
    flag: str | None = None
    """The option's name, where it is not the field's."""
    metavar: str | None = None
    """The placeholder of a value in help."""
    when_none: str | None = None
    """The effect of no value, in the words of help."""
    heading: str = ""
    """Heading of the group of options that begins with this one; none where the group goes on."""

    def check(self, name: str, value: Any) -> None:
        """Raises ValueError, naming the field, its value and its range, for a value that is out of it."""
        if value is None or self.allows(value):
            return
        known = (("above", self.above), ("at least", self.at_least), ("at most", self.at_most))
        bounds = [f"{words} {bound}" for words, bound in known if bound is not None]
        raise ValueError(f"{name} is {value}; it must be {' and '.join(bounds)}")

    def allows(self, value: float) -> bool:
        """Whether the value is in the range; NaN is in none."""
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
        )


def option(default: Any, **setting: Any) -> Any:
    """A field with a `Setting`; the field's docstring is the option's help.

    Every field has a default: a command without any option says what is wrong, or runs.
    """
    return field(default=default, metadata={_KEY: Setting(**setting)})


def check_ranges(config: Any) -> None:
    """Raises ValueError for the first field whose value is out of its range."""
    for field_ in dataclasses.fields(config):
        _setting(field_).check(field_.name, getattr(config, field_.name))


@dataclass(frozen=True, kw_only=True)
class Option:
    """One field of a configuration, as the command line has it."""

    heading: str
    name: str
    kind: Any
    """Its type, without None."""
    default: Any
    setting: Setting
    meaning: str

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags as they are typed: two for what is true or false."""
        flag = self.setting.flag or "--" + self.name.replace("_", "-")
        return (flag, "--no-" + flag.removeprefix("--")) if self.kind is bool else (flag,)

    @property
    def values(self) -> tuple[Any, ...]:
        """The only values there are; none where there are too many to say."""
        return typing.get_args(self.kind) if typing.get_origin(self.kind) is Literal else ()


def options(config: type[Any]) -> Iterator[Option]:
    """Every option of a configuration, those of its sections where these stand."""
    hints, meanings = typing.get_type_hints(config), field_docstrings(config)
    heading = ""
    for field_ in dataclasses.fields(config):
        kind, heading = hints[field_.name], _setting(field_).heading or heading
        if dataclasses.is_dataclass(kind):
            yield from options(cast(type[Any], kind))
            continue
        if typing.get_origin(kind) is types.UnionType:
            (kind,) = (part for part in typing.get_args(kind) if part is not types.NoneType)
        name, setting, meaning = field_.name, _setting(field_), meanings[field_.name]
        yield Option(
            heading=heading, name=name, kind=kind, default=field_.default, setting=setting, meaning=meaning
        )


def build(config: type[Any], values: Mapping[str, Any]) -> Any:
    """A configuration from the values of its options by field name. Raises ValueError as its fields do."""
    kinds: dict[str, Any] = typing.get_type_hints(config)
    return config(
        **{
            name: build(cast(type[Any], kind), values) if dataclasses.is_dataclass(kind) else values[name]
            for name, kind in kinds.items()
        }
    )


def parameters(config: type[Any]) -> list[click.Parameter]:
    """The options of a command that takes a configuration; each has its field's name."""
    return [_parameter(option) for option in options(config)]


def _parameter(option: Option) -> click.Option:
    is_many = typing.get_origin(option.kind) is tuple
    meaning = option.meaning
    if option.setting.when_none:
        meaning += f"  [default: {option.setting.when_none}]"
    return click.Option(
        ["/".join(option.flags), option.name],
        type=_type(option),
        multiple=is_many,
        default=None if is_many else option.default,
        metavar=option.setting.metavar,
        help=meaning,
    )


def _type(option: Option) -> Any:
    setting = option.setting
    if option.values:
        return click.Choice(list(option.values))
    if option.kind is Path:
        return click.Path(path_type=Path)
    if option.kind is int:
        return click.IntRange(_whole(setting.at_least), _whole(setting.at_most))
    if option.kind is float:
        least = setting.above if setting.above is not None else setting.at_least
        return click.FloatRange(least, setting.at_most, min_open=setting.above is not None)
    return None if option.kind is bool else click.STRING


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


def _setting(field_: "dataclasses.Field[Any]") -> Setting:
    setting: Setting = field_.metadata.get(_KEY, Setting())
    return setting
