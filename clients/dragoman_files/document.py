"""Whole documents: their texts are translated, and all around them stays as it was, to the byte.

A document is read as a whole and written in one go from its beginning to its end: each unit's bytes are what
stands between the text before and its own, then its translation.
"""

import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

from dragoman_files.content import Codec, decode
from dragoman_files.format import (
    TEXT_BYTES,
    Details,
    FileError,
    Format,
    FormatName,
    FormatOptions,
    Input,
    Reading,
    TextFormat,
    Unit,
)
from dragoman_files.texts import join_lines

Write = Callable[[str], str]
"""A translation in the notation of the file."""

MAX_DOCUMENT_BYTES = 1 << 28
"""The largest document: it is held in memory as a whole, several times."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """A range of the source, and what its translation is written as in its place."""

    start: int
    end: int
    text: str
    write: Write
    readable: str | None = None
    """The text for people, where `text` has markup of the server's."""
    original: str | None = None
    """The text for a segment without a translation; None keeps the source's."""
    before: str = ""
    """A text that is written before it in any case, and was not in the source."""
    after: str = ""
    """A text that is written behind it in any case."""

    def moved(self, offset: int) -> "Segment":
        """It, in a source that has so much more before it."""
        return replace(self, start=self.start + offset, end=self.end + offset)


def document_format(
    name: FormatName,
    options: FormatOptions,
    *,
    segments: Callable[[str, Reading], Iterable[Segment]],
    prepare: Callable[[str, Reading], str] = lambda text, reading: text,
    declared: re.Pattern[bytes] | None = None,
    has_references: bool = False,
    text_format: TextFormat | None = None,
) -> Format:
    """A format that is a function from the text of a document to its segments.

    `segments` yields them in any order, and raises FileError. `prepare` makes of a document what it is in
    the target language before anything is translated. `declared` is as of `decode`. `has_references`: a
    character that the encoding lacks can be written as a reference of XML.
    """

    def units(source: Input) -> list[Unit]:
        """All units; one of an empty text where there are none. Raises FileError."""
        content = read_whole(source)
        text, codec = decode(content, source.name, options.encoding, declared)
        if has_references:
            codec = replace(codec, errors="xmlcharrefreplace")
        try:
            reading = Reading(source, len(content), options)
            text = prepare(text, reading)
            found = counted(segments(text, reading), reading)
        except FileError as error:
            raise error.within(source.name) from error
        return units_of(text, found, codec, source.position(), join=bool(options.join_lines))

    return Format(name=name, noun="texts", units=units, text_format=text_format)


def counted(segments: Iterable[Segment], reading: Reading) -> list[Segment]:
    """All of them, by where they begin. Raises FileError for more than a document of its size may hold."""
    result = []
    for segment in segments:
        reading.take(TEXT_BYTES)
        result.append(segment)
    return sorted(result, key=lambda segment: segment.start)


def size_of(stream: BinaryIO) -> int:
    return stream.seek(0, io.SEEK_END)


def read_whole(source: Input) -> bytes:
    """All bytes. Raises FileError for too many."""
    content = source.rewound().stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(content) > MAX_DOCUMENT_BYTES:
        size = f"{MAX_DOCUMENT_BYTES >> 20} MiB, and files of its format are held in memory"
        raise FileError(f"{source.name} has more than {size}: split it")
    return content


def units_of(source: str, segments: Sequence[Segment], codec: Codec, size: int, *, join: bool) -> list[Unit]:
    """The units of a document; `size` is that of its file, in bytes."""
    # A document without a text is still written.
    segments = segments or [Segment(start=0, end=0, text="", write=str)]
    units: list[Unit] = []
    end, line = 0, 1
    for number, segment in enumerate(segments, start=1):
        assert segment.start >= end, f"text {number} begins at {segment.start}, before {end}"
        is_last = number == len(segments)
        line += source.count("\n", end, segment.start)
        units.append(
            Unit(
                number=number,
                position=size * number // len(segments),
                text=join_lines(segment.text) if join else segment.text,
                raw=segment.text if segment.readable is None else segment.readable,
                is_markup=segment.readable is not None,
                error=None,
                location={"number": number, "line": line},
                write=_writer(
                    segment,
                    codec,
                    (codec.mark if number == 1 else b"") + codec.encode(source[end : segment.start]),
                    source[segment.start : segment.end],
                    codec.encode(source[segment.end :]) if is_last else b"",
                ),
            )
        )
        line += source.count("\n", segment.start, segment.end)
        end = segment.end
    return units


def _writer(
    segment: Segment, codec: Codec, before: bytes, raw: str, after: bytes
) -> Callable[[str | None, Details], bytes]:
    """A unit's bytes, with what stands around them; `raw` is its text in the source."""

    def write(translation: str | None, details: Details) -> bytes:
        is_same = segment.readable is not None and segment.original is None and translation == segment.text
        if translation is None or is_same:
            # What stands there is left, to the byte.
            written = raw if segment.original is None else segment.original
        else:
            written = segment.write(translation)
        return before + codec.encode(segment.before + written + segment.after) + after

    return write
