"""The errors of a job, apart from the server's, and why a unit of a file has no translation."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dragoman.errors import DragomanError
from dragoman_files.format import FileError, Unit


class JobError(ValueError):
    """The job cannot start or go on as it was asked for; the message says what to do."""


@contextmanager
def of_the_job() -> Iterator[None]:
    """Makes the error of a file one of the job that reads or writes it."""
    try:
        yield
    except FileError as error:
        raise JobError(str(error)) from error


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


def failure_of(unit: Unit, error: Exception | None) -> Failure:
    """The failure of a unit without a translation; `error` is the server's, or was raised by writing."""
    return Failure(
        status=error.status if isinstance(error, DragomanError) else "INVALID_ARGUMENT",
        message=unit.error or _of_line(str(error)),
        text=(not unit.is_markup and unit.text) or unit.raw,
    )


def _of_line(message: str) -> str:
    """A message about a text of a stream, for whoever counts lines and knows of no stream."""
    beginning = _TEXT_OF_A_STREAM.match(message)
    if beginning is None:
        return message
    return ("the line's text has " if beginning["verb"] else "") + message[beginning.end() :]
