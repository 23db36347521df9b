"""The limits of callers: a file, read strictly."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from dragoman_server.errors import ServerFileError
from dragoman_server.quoting import list_names, quote
from dragoman_server.service.word_file import read_words

OTHERS = "*"
"""The name of all callers that have no line of their own."""
UNLIMITED = "unlimited"
"""The only word of a caller who is bound by no limit of the file."""
MAX_VALUE = 10**15
"""Greatest value of a limit."""


@dataclass(frozen=True, kw_only=True)
class CallerLimits:
    """The limits of one caller; None is no limit. The file has hyphens in the names."""

    calls: int | None = None
    """Calls in progress at once, over gRPC and HTTP together; a stream is one."""
    calls_per_minute: int | None = None
    """Calls begun in any sixty seconds."""
    characters_per_minute: int | None = None
    """Characters of texts in any sixty seconds."""
    characters_per_day: int | None = None
    """Characters of texts in a day of UTC."""


NAMES = {limit_field.name.replace("_", "-"): limit_field.name for limit_field in fields(CallerLimits)}
"""The fields by their names in the file."""


def read_limits(path: Path, known_names: Collection[str] | None) -> dict[str, CallerLimits]:
    """The limits of a file by caller: a line each, the name and LIMIT=VALUE one or more times.

    Empty lines and those that begin with # are skipped. `known_names` are those of all callers, None where
    nobody knows them before they call. Raises ServerFileError, which names the line.
    """
    limits: dict[str, CallerLimits] = {}
    for number, (name, *words) in read_words(path):
        try:
            if name in limits:
                raise ValueError(f"{name} has a line already; say all of its limits in one")
            if known_names is not None and name != OTHERS and name not in known_names:
                raise ValueError(f"{quote(name)} is no caller of the file of tokens, and not {OTHERS}")
            limits[name] = CallerLimits() if words == [UNLIMITED] else _read(words)
        except ValueError as error:
            raise ServerFileError(f"{path}, line {number}: {error}") from None
    return limits


def limits_of(name: str | None, limits: Mapping[str, CallerLimits]) -> CallerLimits:
    """A caller's own, or those of all others."""
    return limits.get(name or OTHERS) or limits.get(OTHERS) or CallerLimits()


def _read(words: list[str]) -> CallerLimits:
    values: dict[str, int] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in NAMES:
            raise ValueError(f"{quote(word)} is no limit; a line is NAME LIMIT=VALUE ..., and there are "
                             f"{list_names(list(NAMES))}, or {UNLIMITED} alone")  # fmt: skip
        if NAMES[name] in values:
            raise ValueError(f"{name} stands there twice")
        if not re.fullmatch("[0-9]{1,16}", value) or not 1 <= int(value) <= MAX_VALUE:
            raise ValueError(f"{name} is {quote(value)}; it must be a whole number from 1 to {MAX_VALUE}")
        values[NAMES[name]] = int(value)
    if not values:
        raise ValueError(f"no limit stands behind the name; {UNLIMITED} is for a caller who has none")
    return CallerLimits(**values)
