"""YAML: strings are translated where they stand, in the style that they are written in."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from dragoman_files.document import Segment
from dragoman_files.format import ITEM_BYTES, FileError, Reading
from dragoman_files.json_strings import is_prose
from dragoman_files.texts import has_letters, is_sound

_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
"""An anchor and a tag before a scalar."""
_INDENTED = re.compile(r"[|>][-+]?\d")
_MAX_DEPTH = 100
"""The parser looks at all levels that are open at each token."""
_STRING = "tag:yaml.org,2002:str"


@dataclass(kw_only=True)
class _Collection:
    """A mapping or a sequence that is open."""

    key: str | None
    """The key of the value that is read: of a sequence, the one that it stands under."""
    is_mapping: bool
    is_key_next: bool


def segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The strings that are values, those under one of the keys alone where some are given, as of JSON.

    Raises FileError for what is no YAML, and for a key that is no scalar.
    """
    keys = reading.options.keys
    for key, value, start, end in _values(source, reading):
        properties = _PROPERTIES.match(source, start, end)
        assert properties is not None
        raw = source[properties.end() : end]
        text = value.strip("\n") if raw[:1] in ("|", ">") else value
        # Where a number says how far a block is indented, its first line need not.
        is_readable = has_letters(text) and is_sound(text) and not _INDENTED.match(raw)
        if is_readable and (key in keys if keys else is_prose(key, text)):
            yield Segment(start=properties.end(), end=end, text=text, write=partial(_written, raw))


def _values(source: str, reading: Reading) -> Iterator[tuple[str | None, str, int, int]]:
    """For each string that is no key: its key, its text, and where it begins and ends."""
    import yaml

    opened = [_Collection(key=None, is_mapping=False, is_key_next=False)]
    try:
        # Its types say nothing of events.
        loader: Any = yaml.SafeLoader(source)
        while loader.check_event():
            event = loader.get_event()
            reading.take(ITEM_BYTES)
            is_scalar, is_mapping = (
                isinstance(event, yaml.ScalarEvent),
                isinstance(event, yaml.MappingStartEvent),
            )
            if isinstance(event, yaml.CollectionEndEvent):
                opened.pop()
            # Not narrowed to what the types know.
            is_node = isinstance(event, yaml.NodeEvent)
            if not is_node:
                continue
            around = opened[-1]
            is_key = around.is_key_next
            around.is_key_next = around.is_mapping and not is_key
            if is_key and not is_scalar:
                raise FileError(f"line {event.start_mark.line + 1} has a key that is no text")
            if is_key:
                around.key = event.value
            elif is_scalar:
                tag = event.tag or loader.resolve(yaml.ScalarNode, event.value, event.implicit)
                if tag in (_STRING, "!"):
                    yield around.key, event.value, event.start_mark.index, event.end_mark.index
            elif is_mapping or isinstance(event, yaml.SequenceStartEvent):
                opened.append(_Collection(key=around.key, is_mapping=is_mapping, is_key_next=is_mapping))
                if len(opened) > _MAX_DEPTH:
                    raise FileError(f"YAML that is nested deeper than {_MAX_DEPTH} levels is not read")
    except yaml.YAMLError as error:
        raise FileError(f"no YAML: {' '.join(str(error).split())[:200]}") from None


def _written(raw: str, translation: str) -> str:
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
