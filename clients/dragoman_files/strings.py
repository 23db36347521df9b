"""Strings by their keys, as applications keep their texts: JSON, YAML, Apple's. Keys are never translated.

A value is written where it stands, in the style that it is written in.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from json import decoder
from typing import Any, NamedTuple

from dragoman_files.document import Segment, Write
from dragoman_files.format import ITEM_BYTES, FileError, Reading
from dragoman_files.texts import has_letters, is_sound

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


class String(NamedTuple):
    start: int
    end: int
    text: str
    write: Write
    key: str | None = None
    """The key that it is under; that of an array for the strings in it."""
    depth: int = 0
    """The number of collections that it stands in."""


def _segments(strings: Iterable[String], is_wanted: Callable[[String], bool]) -> Iterator[Segment]:
    """The strings that are wanted, with a letter."""
    for one in strings:
        if has_letters(one.text) and is_sound(one.text) and is_wanted(one):
            yield Segment(start=one.start, end=one.end, text=one.text, write=one.write)


def _of_keys(reading: Reading) -> Callable[[String], bool]:
    """Strings under one of the keys, however deep, where some are given, else those that look like texts."""
    keys = reading.options.keys
    return lambda string: string.key in keys if keys else _is_prose(string)


def _is_prose(string: String) -> bool:
    """Whether a string may be meant for people, by its key and its own look."""
    is_technical = _TECHNICAL_KEY.search(string.key or "") and _NAMES.fullmatch(string.text)
    return not (is_technical or _NO_TEXT.fullmatch(string.text))


_NEXT = re.compile(r'["{}\[\],:]')


def json_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The texts of a JSON document. Raises FileError for what is none."""
    return _segments(_json_strings(source), _of_keys(reading))


def bundle_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The messages of an Application Resource Bundle (.arb). Raises FileError for what is no JSON."""
    return _segments(
        _json_strings(source), lambda string: string.depth == 1 and not (string.key or "@").startswith("@")
    )


def prepare_bundle(source: str, reading: Reading) -> str:
    """The bundle, which says that it is in the target language."""
    if reading.target_language is None:
        return source
    locale = json.dumps(reading.target_language.replace("-", "_"))
    return re.sub(r'("@@locale"\s*:\s*)"[^"\\]*"', lambda match: match[1] + locale, source)


def _json_strings(source: str) -> Iterator[String]:
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
    # The key under which each object or array that is open stands, and the last key of each object.
    keys: list[str | None] = [None]
    pending: String | None = None
    position = 0
    while (match := _NEXT.search(source, position)) is not None:
        position = match.end()
        if match[0] == '"':
            text, position = _scan(source, position)
            raw = source[match.start() : position]
            write = partial(json.dumps, ensure_ascii="\\u" in raw and raw.isascii())
            pending = String(match.start(), position, text, write, keys[-1], len(keys) - 1)
        elif match[0] == ":":
            assert pending is not None
            keys[-1], pending = pending.text, None
        else:
            if pending is not None:
                yield pending
                pending = None
            if match[0] in "{[":
                keys.append(keys[-1])
            elif match[0] in "}]":
                keys.pop()
    if pending is not None:
        yield pending


def _scan(source: str, start: int) -> tuple[str, int]:
    # Not in the types, but what the decoder of the standard library is made of.
    scan: Any = getattr(decoder, "scanstring")  # noqa: B009
    text, end = scan(source, start, True)
    return str(text), int(end)


_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
"""An anchor and a tag before a scalar."""
_INDENTED = re.compile(r"[|>][-+]?\d")
_MAX_DEPTH = 100
"""The parser looks at all levels that are open at each token."""
_STRING_TAGS = ("tag:yaml.org,2002:str", "!")


def yaml_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The texts of a YAML document. Raises FileError for what is none, and for a key that is no scalar."""
    return _segments(_yaml_strings(source, reading), _of_keys(reading))


def _yaml_strings(source: str, reading: Reading) -> Iterator[String]:
    import yaml

    # Of each collection that is open: the key of the value that is read, of a sequence the one that it stands
    # under; and whether a key is next, None of a sequence.
    keys: list[str | None] = [None]
    turns: list[bool | None] = [None]
    try:
        # Its types say nothing of events.
        loader: Any = yaml.SafeLoader(source)
        while loader.check_event():
            event = loader.get_event()
            reading.take(ITEM_BYTES)
            is_scalar = isinstance(event, yaml.ScalarEvent)
            if isinstance(event, yaml.CollectionEndEvent):
                keys.pop()
                turns.pop()
            # Not narrowed to what the types know.
            is_node = isinstance(event, yaml.NodeEvent)
            if not is_node:
                continue
            is_key, turns[-1] = turns[-1], None if turns[-1] is None else not turns[-1]
            if is_key and not is_scalar:
                raise FileError(f"line {event.start_mark.line + 1} has a key that is no text")
            if is_key:
                keys[-1] = event.value
            elif is_scalar:
                tag = event.tag or loader.resolve(yaml.ScalarNode, event.value, event.implicit)
                if tag in _STRING_TAGS:
                    yield from _yaml_string(source, event, keys[-1])
            elif isinstance(event, yaml.CollectionStartEvent):
                keys.append(keys[-1])
                turns.append(True if isinstance(event, yaml.MappingStartEvent) else None)
                if len(keys) > _MAX_DEPTH:
                    raise FileError(f"YAML that is nested deeper than {_MAX_DEPTH} levels is not read")
    except yaml.YAMLError as error:
        raise FileError(f"no YAML: {' '.join(str(error).split())[:200]}") from None


def _yaml_string(source: str, event: Any, key: str | None) -> Iterator[String]:
    """A scalar without its properties, if it can be written."""
    end = event.end_mark.index
    properties = _PROPERTIES.match(source, event.start_mark.index, end)
    assert properties is not None
    raw = source[properties.end() : end]
    # Where a number says how far a block is indented, its first line need not.
    if not _INDENTED.match(raw):
        text = event.value.strip("\n") if raw[:1] in ("|", ">") else event.value
        yield String(properties.end(), end, text, partial(_in_yaml, raw), key)


def _in_yaml(raw: str, translation: str) -> str:
    """A translation in the place of a scalar, which is its value whatever is in it."""
    import yaml

    if raw[0] in "|>":
        return _block(raw, translation)
    if "\n" in translation or raw[0] == '"':
        return json.dumps(translation, ensure_ascii=False)
    if raw[0] == "'":
        return "'" + translation.replace("'", "''") + "'"
    listed = yaml.safe_dump([translation], default_flow_style=True, allow_unicode=True, width=1 << 30)
    return str(listed[1:-2])


def _block(raw: str, translation: str) -> str:
    """A block of lines, whose line breaks are the translation's."""
    body = raw.rstrip()
    header, newline, lines = re.split(r"(\r?\n)", body, maxsplit=1)
    indent = re.match(r"(?:[ \t]*\r?\n)*( *)", lines)
    assert indent is not None
    written = (indent[1] + line if line else "" for line in translation.strip(" \t\n").split("\n"))
    return header.replace(">", "|", 1) + newline + newline.join(written) + raw[len(body) :]


_STRING = r'"(?:[^"\\]|\\.)*+"'
_ENTRY = re.compile(
    rf"(?:\s++|/\*.*?\*/|//[^\n]*+)*+(?:(?:{_STRING}|[\w.$-]++)\s*+=\s*+(?P<value>{_STRING})\s*+;|\Z)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\([Uu][0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_WRITTEN = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})


def apple_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The values of a list of pairs, `"key" = "value";`. Raises FileError for anything else."""
    return _segments(_apple_strings(source, reading), lambda string: True)


def _apple_strings(source: str, reading: Reading) -> Iterator[String]:
    position = 0
    while position < len(source):
        entry = _ENTRY.match(source, position)
        if entry is None:
            line = source.count("\n", 0, position) + 1
            raise FileError(f'what follows line {line} is no pair, "key" = "value";, or comment')
        position = entry.end()
        if entry["value"] is not None:
            yield String(*entry.span("value"), unescaped(entry["value"][1:-1]), _quoted)
        reading.check()


def _quoted(translation: str) -> str:
    return f'"{translation.translate(_WRITTEN)}"'


def unescaped(value: str) -> str:
    """What a string of Apple's or Android's says."""

    def character(match: re.Match[str]) -> str:
        name = match[1]
        return chr(int(name[1:], 16)) if len(name) > 1 else _ESCAPED.get(name, name)

    # Two halves of a character may each have an escape.
    return _ESCAPE.sub(character, value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
