"""JSON documents of strings, as applications keep their texts in: values are translated, keys never."""

import functools
import json
import re
from collections.abc import Callable, Iterator
from json import decoder
from typing import Any

from dragoman_files.document import Segment
from dragoman_files.format import FileError, Reading
from dragoman_files.texts import has_letters, is_sound

_NEXT = re.compile(r'["{}\[\],:]')

_TECHNICAL_KEY = re.compile(
    r"(?:^|[-_.]|(?<=[a-z])(?=[A-Z]))(?:id|ids|uuid|guid|key|class|classes|className|css|style|slug|href|src|url|uri"
    r"|path|file|filename|icon|image|img|color|colour|lang|locale|charset|encoding|mime|type|format|pattern|regex"
    r"|regexp|route|selector|testid|token|hash|version|variant|align)\Z",
    re.IGNORECASE,
)
"""The last word of keys whose strings are names rather than texts, where these look like it."""
_NAMES = re.compile(
    r"[a-z0-9]+|(?=\S*[-_./:#\d]|\S*[a-z][A-Z])\S+"
    r"|(?=.*[-_./:#\d])[a-z0-9_:./#\[\]-]+(?: [a-z0-9_:./#\[\]-]+)+"
)
"""How they look: one word in small letters, or with signs, digits or capitals within, or several of these."""
_NO_TEXT = re.compile(
    r"(?=.*(?:YY|yy|MM|DD|dd|HH|hh|mm|ss))[YyMDdHhmsSaAZT:./,\- ]{2,30}"
    r"|(?=[^_:.]*[_:.])[a-z0-9]++(?:[-_:.][a-z0-9]++)++"
)
"""What is no text whatever its key: formats of dates and times, and names in several parts."""


def is_prose(key: str | None, text: str) -> bool:
    """Whether a string may be meant for people, by its key and its own look."""
    is_technical = _TECHNICAL_KEY.search(key or "") is not None and _NAMES.fullmatch(text) is not None
    return not (is_technical or _NO_TEXT.fullmatch(text))


def segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The string values with a letter, those under one of the keys alone where some are given, however deep,
    else those that look like texts.

    Strings of an array are under its key. Raises FileError for what is no JSON.
    """
    keys = reading.options.keys
    return _segments(source, lambda key, depth, text: key in keys if keys else is_prose(key, text))


def bundle_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The messages of an Application Resource Bundle (.arb). Raises FileError for what is no JSON."""
    return _segments(source, lambda key, depth, text: depth == 1 and not (key or "@").startswith("@"))


def prepare_bundle(source: str, reading: Reading) -> str:
    """The bundle, which says that it is in the target language."""
    if reading.target_language is None:
        return source
    locale = json.dumps(reading.target_language.replace("-", "_"))
    return re.sub(r'("@@locale"\s*:\s*)"[^"\\]*"', lambda match: match[1] + locale, source)


def _segments(source: str, is_wanted: Callable[[str | None, int, str], bool]) -> Iterator[Segment]:
    """The strings that are wanted, by their keys, how deep they stand, and what they are."""
    try:
        # Neither objects nor numbers are needed, and long numbers are refused as such.
        json.loads(source, object_pairs_hook=len, parse_int=len, parse_float=len)
    except json.JSONDecodeError as error:
        raise FileError(
            f"no JSON: {error.msg} at line {error.lineno}, column {error.colno}. If each line is a JSON "
            "object, ",
            "`--format jsonl` says so",
            elsewhere="a name that ends in .jsonl says so",
        ) from None
    except RecursionError:
        raise FileError("JSON that is nested too deep to be read") from None
    for start, end, key, depth, text in _values(source):
        if is_wanted(key, depth, text) and has_letters(text) and is_sound(text):
            write = functools.partial(
                _written, is_ascii="\\u" in source[start:end] and source[start:end].isascii()
            )
            yield Segment(start=start, end=end, text=text, write=write)


def _written(translation: str, *, is_ascii: bool) -> str:
    return json.dumps(translation, ensure_ascii=is_ascii)


def _values(source: str) -> Iterator[tuple[int, int, str | None, int, str]]:
    """For each string that is a value: where it begins and ends, its key, in how many collections it stands,
    and its text. The JSON is sound."""
    # The key under which each object or array that is open stands, and the last key of each object.
    keys: list[str | None] = [None]
    pending: tuple[int, int, str] | None = None
    position = 0
    while (match := _NEXT.search(source, position)) is not None:
        position = match.end()
        if match[0] == '"':
            text, end = _scan(source, position)
            pending = (match.start(), end, text)
            position = end
            continue
        if match[0] == ":":
            assert pending is not None
            keys[-1] = pending[2]
            pending = None
            continue
        if pending is not None:
            start, end, text = pending
            yield start, end, keys[-1], len(keys) - 1, text
            pending = None
        if match[0] in "{[":
            keys.append(keys[-1])
        elif match[0] in "}]":
            keys.pop()
    if pending is not None:
        yield pending[0], pending[1], None, 0, pending[2]


def _scan(source: str, start: int) -> tuple[str, int]:
    # Not in the types, but what the decoder of the standard library is made of.
    scan: Any = getattr(decoder, "scanstring")  # noqa: B009
    text, end = scan(source, start, True)
    return str(text), int(end)
