"""Whole documents: texts in their places, and all around them as it was, to the byte.

A document is read as a whole and written in one go from its beginning to its end: each unit's bytes are what
stands between the text before and its own, then its translation.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from dragoman.jobs.errors import JobError
from dragoman.jobs.format import FormatName, FormatOptions, Input
from dragoman.jobs.formats.encodings import Codec, decode
from dragoman.jobs.formats.spacing import join_lines
from dragoman.jobs.unit import Unit
from dragoman.settings import TextFormat

Write = Callable[[str], str]
"""A translation in the notation of the file."""

MAX_DOCUMENT_BYTES = 1 << 28
"""What is read as a whole must fit into memory, several times."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a translation goes: it takes the place of a range of the source."""

    start: int
    end: int
    text: str
    """What is to translate."""
    write: Write
    shown: str | None = None
    """The same for people, where it has markup of the server's."""
    original: str | None = None
    """What stands there where there is no translation; None for what stood there."""
    before: str = ""
    """What comes before it in any case, and was not in the source."""
    after: str = ""
    """What comes behind it in any case."""


class DocumentFormat:
    """A format that is a function from the text of a document to the places of its texts."""

    noun = "texts"
    checks_encoding = True

    def __init__(
        self,
        name: FormatName,
        options: FormatOptions,
        places: Callable[[str], Iterable[Place]],
        *,
        declared: Callable[[bytes], str | None] = lambda head: None,
        has_references: bool = False,
        text_format: TextFormat | None = None,
    ) -> None:
        """`places` gives them in their order, and raises JobError. `declared` is the encoding that a file
        says it is in; `has_references` that a character it lacks can be written as a reference of XML;
        `text_format` what the texts of its places are.
        """
        self.name = name
        self._options = options
        self._places = places
        self._declared = declared
        self._has_references = has_references
        self.text_format = text_format

    def units(self, source: Input) -> list[Unit]:
        """All units; one of an empty text where there are none. Raises JobError."""
        content = read_whole(source)
        text, codec = decode(content, source.name, self._options.encoding, self._declared(content[:4096]))
        if self._has_references:
            codec = replace(codec, errors="xmlcharrefreplace")
        try:
            places = list(self._places(text))
        except JobError as error:
            raise JobError(f"{source.name}: {error}") from error
        return units_of(text, places, codec, source.position(), join=self._options.join_lines)


def read_whole(source: Input) -> bytes:
    """All bytes. Raises JobError for too many."""
    content = source.rewound().stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(content) > MAX_DOCUMENT_BYTES:
        raise JobError(
            f"{source.name} has more than {MAX_DOCUMENT_BYTES >> 20} MiB, and files of its format are held "
            "in memory: split it"
        )
    return content


def units_of(source: str, places: Sequence[Place], codec: Codec, size: int, *, join: bool) -> list[Unit]:
    """The units of a document; `size` is that of its file, in bytes."""
    # A document without a text is still written.
    places = places or [Place(start=0, end=0, text="", write=str)]
    units: list[Unit] = []
    end, line = 0, 1
    for number, place in enumerate(places, start=1):
        assert place.start >= end, f"text {number} begins at {place.start}, before {end}"
        is_last = number == len(places)
        line += source.count("\n", end, place.start)
        units.append(
            Unit(
                number=number,
                position=size * number // len(places),
                text=join_lines(place.text) if join else place.text,
                raw=place.text if place.shown is None else place.shown,
                is_markup=place.shown is not None,
                error=None,
                place={"number": number, "line": line},
                write=functools.partial(
                    _write,
                    place,
                    (codec.mark if number == 1 else b"") + codec.encode(source[end : place.start]),
                    source[place.start : place.end] if place.original is None else place.original,
                    codec.encode(source[place.end :]) if is_last else b"",
                    codec,
                    place.text if place.shown is not None else None,
                ),
            )
        )
        line += source.count("\n", place.start, place.end)
        end = place.end
    return units


def _write(
    place: Place,
    before: bytes,
    original: str,
    after: bytes,
    codec: Codec,
    unchanged: str | None,
    translation: str | None,
    truncated: bool,
) -> bytes:
    """`unchanged` is a translation that leaves what stands there, to the byte."""
    is_original = translation is None or translation == unchanged
    written = original if is_original or translation is None else place.write(translation)
    return before + codec.encode(place.before + written + place.after) + after
