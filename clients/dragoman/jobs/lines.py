"""Files of lines: whatever a line holds, it can be read and counted, as bytes."""

import codecs
import functools
import io
from collections.abc import Iterator
from contextlib import closing
from typing import Protocol

from dragoman.jobs.errors import JobError, UnitError
from dragoman.jobs.format import Input
from dragoman.jobs.formats.encodings import Codec
from dragoman.jobs.unit import Unit


class LineFormat(Protocol):
    """Reads the text of a line, and writes the line that stands for it in the output."""

    def read(self, content: bytes) -> str:
        """The text of a line, in UTF-8. Raises UnitError where it holds none."""

    def write(self, content: bytes, translation: str | None, *, truncated: bool) -> bytes:
        """The output's line for an input line and its translation, None where it failed. No line ending.

        `truncated` says that the translation lacks an end: the text's was dropped, or its own limit reached.
        """


def parse_line(raw: bytes, format_: LineFormat, *, number: int, position: int) -> Unit:
    """The line that was read, its ending included."""
    raw = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
    content = raw.removesuffix(b"\n").removesuffix(b"\r") if raw.endswith(b"\n") else raw
    try:
        text, error = format_.read(content), None
    except UnitError as line_error:
        text, error = "", str(line_error)
    return Unit(
        number=number,
        position=position,
        text=text,
        raw=content.decode(errors="backslashreplace"),
        error=error,
        location={"line": number},
        write=functools.partial(_write, format_, content, raw[len(content) :]),
    )


def _write(
    format_: LineFormat, content: bytes, ending: bytes, translation: str | None, truncated: bool
) -> bytes:
    return format_.write(content, translation, truncated=truncated) + ending


def raw_lines(source: Input, codec: Codec | None) -> Iterator[bytes]:
    """The lines with their endings, "\\n" or "\\r\\n"; in UTF-8 where they are in another encoding.

    Raises JobError for bytes that are not in that encoding.
    """
    if codec is None:
        # Not `yield from`, which closes what it reads when somebody stops early.
        for line in source.stream:  # noqa: UP028
            yield line
        return
    source.stream.seek(len(codec.mark))
    # Detached, so that what it reads from stays open.
    with closing(_Reader(source, codec)) as reader:
        yield from reader.lines()


class _Reader:
    """Lines in another encoding than UTF-8."""

    def __init__(self, source: Input, codec: Codec) -> None:
        self._source = source
        self._codec = codec
        self._text = io.TextIOWrapper(source.stream, encoding=codec.name, newline="\n")

    def lines(self) -> Iterator[bytes]:
        number = 0
        try:
            for line in self._text:
                number += 1
                yield line.encode()
        except UnicodeError as error:
            raise JobError(
                f"{self._source.name} is not in {self._codec.name}, after line {number}: {error}; --encoding "
                "says which encoding it is in"
            ) from None

    def close(self) -> None:
        self._text.detach()


def transcoded(unit: Unit, codec: Codec | None) -> Unit:
    """The unit of a line that was read in UTF-8 as one that is written in the input's own encoding."""
    if codec is None:
        return unit

    def write(translation: str | None, truncated: bool) -> bytes:
        mark = codec.mark if unit.number == 1 else b""
        return mark + codec.encode(unit.write(translation, truncated).decode())

    from dataclasses import replace

    return replace(unit, write=write)
