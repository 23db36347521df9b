"""Resources of applications in XML: those of .NET (.resx, .resw) and Android's. Values are translated."""

import re
from collections.abc import Iterator
from dataclasses import replace

from dragoman_files.document import Segment
from dragoman_files.format import Reading
from dragoman_files.strings import unescaped
from dragoman_files.tags import Piece
from dragoman_files.texts import ELEMENTS
from dragoman_files.xml_texts import Event, Grammar, Paragraph, tag_pieces


def _is_no_text(tag: Event) -> bool:
    """Whether it is an object, what a designer notes of one, or about the file."""
    is_data = tag.name == "data"
    is_noted = (tag.attribute("name") or "").startswith(">>")
    is_object = tag.attribute("type") is not None or tag.attribute("mimetype") is not None
    return (is_data and (is_noted or is_object)) or tag.name in ("resheader", "metadata", "assembly")


RESX = Grammar(paragraphs=frozenset(("value",)), is_left_out=_is_no_text, joins=False, root="root")
"""The values of what is a string."""


# developer.android.com/guide/topics/resources/string-resource: a quote keeps the white space around it.
_OF_ANDROID = re.compile(r'(?P<text>(?:[^"\\]|\\(?!n|u0020).?)+)|(?P<line>\\n)|"|\\u0020', re.DOTALL)
_REFERENCE = re.compile(r"[@?][\w.:/+*-]+")


def _android_pieces(source: str, paragraph: Paragraph, grammar: Grammar, reading: Reading) -> Iterator[Piece]:
    """The pieces of a string, in which escapes of white space are pieces of their own."""
    for piece in tag_pieces(source, paragraph, grammar, reading):
        if piece.kind != "text":
            yield piece
            continue
        for found in _OF_ANDROID.finditer(source, piece.start, piece.end):
            part = replace(piece, start=found.start(), end=found.end())
            if found["text"]:
                yield replace(part, decode=lambda raw, decode=piece.decode: unescaped(decode(raw)))  # type: ignore[misc]
            else:
                yield replace(part, kind="break" if found["line"] else "empty", decode=lambda raw: "\n")


_ANDROID = Grammar(
    paragraphs=ELEMENTS["android"]["paragraphs"],
    around=ELEMENTS["android"]["around"],
    is_left_out=lambda tag: tag.attribute("translatable") == "false",
    root="resources",
    pieces=_android_pieces,
    escape=lambda text: re.sub(r"^[@?]|[\\'\"]", r"\\\g<0>", text),
)


def android_segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The strings, those of arrays and plurals too, but for references to others. Raises FileError."""
    for segment in _ANDROID.segments(source, reading):
        if not _REFERENCE.fullmatch(source[segment.start : segment.end]):
            yield segment
