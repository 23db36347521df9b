"""Resources of applications: those of .NET (.resx, .resw) and Apple's (.strings). Values are translated."""

import re
from collections.abc import Iterator

from dragoman_files import xml_texts
from dragoman_files.document import Segment
from dragoman_files.format import FileError, Reading
from dragoman_files.texts import has_letters
from dragoman_files.xml_events import Event
from dragoman_files.xml_texts import Grammar

_STRING = r'"(?:[^"\\]|\\.)*+"'
_ENTRY = re.compile(
    rf"(?:\s++|/\*.*?\*/|//[^\n]*+)*+(?:(?:{_STRING}|[\w.$-]++)\s*+=\s*+(?P<value>{_STRING})\s*+;|\Z)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(U[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _is_no_text(tag: Event) -> bool:
    """Whether it is an object, what a designer notes of one, or about the file."""
    is_data = tag.name == "data"
    is_noted = (tag.attribute("name") or "").startswith(">>")
    is_object = tag.attribute("type") is not None or tag.attribute("mimetype") is not None
    return (is_data and (is_noted or is_object)) or tag.name in ("resheader", "metadata", "assembly")


_RESX = Grammar(paragraphs=frozenset(("value",)), is_left_out=_is_no_text, joins=False, root="root")


def resx_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The values of what is a string. Raises FileError."""
    return xml_texts.segments(source, reading, grammar=_RESX)


def apple_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The values of a list of pairs, `"key" = "value";`. Raises FileError for anything else."""
    position = 0
    while position < len(source):
        entry = _ENTRY.match(source, position)
        if entry is None:
            line = source.count("\n", 0, position) + 1
            raise FileError(f'what follows line {line} is no pair, "key" = "value";, or comment')
        position = entry.end()
        if entry["value"] is not None and has_letters(text := _decoded(entry["value"][1:-1])):
            yield Segment(start=entry.start("value"), end=entry.end("value"), text=text, write=_written)
        reading.check()


def _decoded(value: str) -> str:
    def character(match: re.Match[str]) -> str:
        name = match[1]
        return chr(int(name[1:], 16)) if len(name) > 1 else _ESCAPED.get(name, name)

    # Two halves of a character may each have an escape.
    return _ESCAPE.sub(character, value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _written(translation: str) -> str:
    return '"' + "".join(_WRITTEN.get(character, character) for character in translation) + '"'
