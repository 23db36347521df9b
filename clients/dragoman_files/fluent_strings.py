"""Strings of Mozilla's Fluent (.ftl): values of messages and of their attributes are translated.

Mozilla's own parser says where each begins and ends; what stands around them stays as it is.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from dragoman_files.document import Segment
from dragoman_files.format import FileError, Reading, UnitError
from dragoman_files.texts import has_letters

if TYPE_CHECKING:
    from fluent.syntax.ast import Message

_ENTRY = re.compile(r"^(?=[A-Za-z])", re.MULTILINE)
"""Where a message begins: all other lines that are not comments or terms begin with white space or "}"."""
_INDENT = re.compile(r"\n([ \t]*)(?=[^ \t\r\n])")
_NO_TEXT = re.compile(r"(?:.*key|keycode|style)", re.IGNORECASE)
"""The names of attributes that are no text."""
_PLACEABLE = re.compile(r"\{[^{}]*\}")
_NODE_BYTES = 2000
"""The maximum that the parser takes for a brace or a line."""


def segments(source: str, reading: Reading) -> Iterator[Segment]:
    """The values with a letter, as texts without their indentation. Terms stay: they are names.

    Raises FileError for what is no Fluent.
    """
    from fluent.syntax import FluentParser, ast

    starts = [0, *(found.start() for found in _ENTRY.finditer(source) if found.start())]
    junk: int | None = None
    has_messages = False
    for start, end in zip(starts, [*starts[1:], len(source)], strict=True):
        entry = source[start:end]
        num_bytes = _NODE_BYTES * (1 + entry.count("{") + entry.count("\n"))
        reading.take(num_bytes)
        try:
            parsed = FluentParser().parse(entry).body
        except RecursionError:
            raise FileError("Fluent that is nested too deep to be read") from None
        for message in parsed:
            if isinstance(message, ast.Message):
                has_messages = True
                yield from _segments(source, start, message)
            elif isinstance(message, ast.Junk) and junk is None:
                junk = start
        reading.give_back(num_bytes)
    if junk is not None and not has_messages:
        line = source.count("\n", 0, junk) + 1
        raise FileError(f"no Fluent: what begins at line {line} is no message, `name = text`")


def _segments(source: str, offset: int, message: "Message") -> Iterator[Segment]:
    named = [attribute for attribute in message.attributes if not _NO_TEXT.fullmatch(attribute.id.name)]
    for pattern in filter(None, (message.value, *(attribute.value for attribute in named))):
        first, last = (element.span for element in (pattern.elements[0], pattern.elements[-1]))
        assert first is not None, "the parser notes where each node is"
        assert last is not None
        end = offset + last.end
        raw = source[offset + first.start : end].lstrip()
        if not has_letters(_PLACEABLE.sub("", raw)):
            continue
        start = end - len(raw)
        line_end = "\r\n" if "\r\n" in raw else "\n"
        text = raw.replace("\r\n", "\n")
        indent = min((found[1] for found in _INDENT.finditer(text)), key=len, default="")
        is_block = not source[source.rfind("\n", 0, start) + 1 : start].strip()
        yield Segment(
            start=start,
            end=end,
            text=text.replace(f"\n{indent}", "\n"),
            write=partial(_written, line_end=line_end, indent=indent, is_block=is_block),
        )


def _written(translation: str, *, line_end: str, indent: str, is_block: bool) -> str:
    """Raises UnitError for a translation that would be read as something else."""
    from fluent.syntax import FluentParser, ast

    text = re.sub(r"\n(?=.)", lambda found: f"\n{indent}", translation)
    if is_block and text[:1] in ("[", "*", "."):
        text = f'{{"{text[0]}"}}{text[1:]}'
    before = "\n " if is_block else " "
    [entry, *others] = FluentParser().parse(f"name ={before}{text}\n").body
    if others or not isinstance(entry, ast.Message) or entry.attributes:
        raise UnitError("the translation would be read as another message")
    return text.replace("\n", line_end)
