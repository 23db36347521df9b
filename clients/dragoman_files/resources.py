"""Resources of applications: those of .NET (.resx, .resw), Android's and Apple's. Values are translated."""

import re
from collections.abc import Iterator
from dataclasses import replace

from dragoman_files import xml_texts
from dragoman_files.document import Segment
from dragoman_files.format import FileError, Reading
from dragoman_files.tags import Piece
from dragoman_files.texts import has_letters
from dragoman_files.xml_events import Event
from dragoman_files.xml_texts import Grammar, Paragraph

_STRING = r'"(?:[^"\\]|\\.)*+"'
_ENTRY = re.compile(
    rf"(?:\s++|/\*.*?\*/|//[^\n]*+)*+(?:(?:{_STRING}|[\w.$-]++)\s*+=\s*+(?P<value>{_STRING})\s*+;|\Z)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\([Uu][0-9A-Fa-f]{4}|.)", re.DOTALL)
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


# developer.android.com/guide/topics/resources/string-resource: a quote keeps the white space around it.
_OF_ANDROID = re.compile(r'(?P<text>(?:[^"\\]|\\(?!n|u0020).?)+)|(?P<line>\\n)|"|\\u0020', re.DOTALL)
_INLINE = (
    *("a", "annotation", "b", "big", "em", "font", "i", "small", "span"),
    *("strike", "strong", "sub", "sup", "tt", "u"),
)
_REFERENCE = re.compile(r"[@?][\w.:/+*-]+")


def _android_pieces(source: str, paragraph: Paragraph, grammar: Grammar, reading: Reading) -> Iterator[Piece]:
    """The pieces of a string, in which escapes of white space are pieces of their own."""
    for piece in xml_texts.tag_pieces(source, paragraph, grammar, reading):
        if piece.kind != "text":
            yield piece
            continue
        for found in _OF_ANDROID.finditer(source, piece.start, piece.end):
            part = replace(piece, start=found.start(), end=found.end())
            if found["text"]:
                yield replace(part, decode=lambda raw, decode=piece.decode: _decoded(decode(raw)))  # type: ignore[misc]
            else:
                yield replace(part, kind="break" if found["line"] else "empty", decode=lambda raw: "\n")


_ANDROID = Grammar(
    paragraphs=frozenset(("string", "item")),
    around=frozenset(_INLINE),
    is_left_out=lambda tag: tag.attribute("translatable") == "false",
    root="resources",
    pieces=_android_pieces,
    escape=lambda text: re.sub(r"^[@?]|[\\'\"]", r"\\\g<0>", text),
)


def android_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The strings, those of arrays and plurals too, but for references to others. Raises FileError."""
    for segment in xml_texts.segments(source, reading, grammar=_ANDROID):
        if not _REFERENCE.fullmatch(source[segment.start : segment.end]):
            yield segment


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
