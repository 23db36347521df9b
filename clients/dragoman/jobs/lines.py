"""The lines of an input file, as bytes: whatever the line holds, it can be read and counted."""

import codecs
import re
from dataclasses import dataclass

from dragoman.errors import DragomanError
from dragoman.jobs.errors import LineError
from dragoman.jobs.format import Format

_TEXT_OF_A_STREAM = re.compile(r"(?:item\.text:|text \d+ of the stream) (?P<verb>has )?")
"""How the server and the client begin what they tell of a text of a stream."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a line has no translation, for people and for programs."""

    status: str
    """Name of the gRPC status code."""
    message: str
    """What is wrong."""
    text: str
    """The text, or the whole line where it holds none."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line."""

    number: int
    """Counted from 1."""
    content: bytes
    """All but the line ending."""
    ending: bytes
    """"\\n", "\\r\\n", or nothing at the end of the file."""
    position: int
    """Bytes of the input, as it lies on disk, that were read to come past the line."""
    text: str
    """The text to translate. Empty where there is none: it then travels as an empty text, and so keeps its
    place in the order and in the window."""
    error: str | None
    """Why there is no text."""

    def failure(self, error: DragomanError | None) -> Failure:
        """Of a line that has no translation; `error` is the server's, where it has one."""
        return Failure(
            status=error.status if error is not None else "INVALID_ARGUMENT",
            message=self.error or _of_line(str(error)),
            text=self.text or self.content.decode(errors="backslashreplace"),
        )


def parse_line(raw: bytes, format_: Format, *, number: int, position: int) -> Line:
    """The line that was read, its ending included."""
    raw = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
    content = raw.removesuffix(b"\n").removesuffix(b"\r") if raw.endswith(b"\n") else raw
    try:
        text, error = format_.read(content), None
    except LineError as line_error:
        text, error = "", str(line_error)
    return Line(
        number=number,
        content=content,
        ending=raw[len(content) :],
        position=position,
        text=text,
        error=error,
    )


def _of_line(message: str) -> str:
    """A message about a text of a stream, for whoever counts lines and knows of no stream."""
    beginning = _TEXT_OF_A_STREAM.match(message)
    if beginning is None:
        return message
    return ("the line's text has " if beginning["verb"] else "") + message[beginning.end() :]
