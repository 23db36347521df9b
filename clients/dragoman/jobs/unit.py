"""The units of a job: the texts of a file, each with all that stands around it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dragoman.errors import DragomanError

_TEXT_OF_A_STREAM = re.compile(r"(?:item\.text:|text \d+ of the stream) (?P<verb>has )?")
"""How the server and the client begin what they tell of a text of a stream."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a unit has no translation, for people and for programs."""

    status: str
    """Name of the gRPC status code."""
    message: str
    """The error's message."""
    text: str
    """The text, or all that stands there where it holds none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """One text of a file: a line, a cell, a paragraph."""

    number: int
    """Counted from 1."""
    position: int
    """Bytes of the input, as it lies on disk, that were read to come past it."""
    text: str
    """The text to translate. Empty where there is none: it then travels as an empty text, and so keeps its
    place in the order and in the window."""
    raw: str
    """The original, for people, where it holds no text."""
    error: str | None
    """Why there is no text."""
    location: Mapping[str, int | str]
    """Where it stands in the input, for the record of what failed."""
    write: Callable[[str | None, bool], bytes]
    """The output's bytes from the end of the unit before to the end of this one, by the translation, None
    where there is none, and whether that lacks an end: the text's was dropped, or its own limit was reached.

    Raises UnitError for a translation that can't stand there; never for None."""

    is_markup: bool = False
    """Whether `text` has markup of the server's, so that `raw` is what people are shown."""

    def failure(self, error: Exception | None) -> Failure:
        """The failure of a unit without a translation; `error` is the server's, or was raised by writing."""
        return Failure(
            status=error.status if isinstance(error, DragomanError) else "INVALID_ARGUMENT",
            message=self.error or _of_line(str(error)),
            text=(not self.is_markup and self.text) or self.raw,
        )


def _of_line(message: str) -> str:
    """A message about a text of a stream, for whoever counts lines and knows of no stream."""
    beginning = _TEXT_OF_A_STREAM.match(message)
    if beginning is None:
        return message
    return ("the line's text has " if beginning["verb"] else "") + message[beginning.end() :]
