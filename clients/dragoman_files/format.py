"""What every format of files has: its input, its units, its errors, and what a reading may take."""

import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Literal, Protocol


class FileError(ValueError):
    """The file can't be read or written as it was asked for; the message says what to do."""

    def __init__(self, problem: str, advice: str = "", *, elsewhere: str = "") -> None:
        """`advice` goes on for whoever calls a command, and `elsewhere` for everybody else."""
        super().__init__(problem + advice)
        self.neutral = problem + elsewhere
        """The message without commands and their options."""
        self._parts = problem, advice, elsewhere

    def within(self, place: str) -> "FileError":
        """The same, of a place."""
        problem, advice, elsewhere = self._parts
        return FileError(f"{place}: {problem}", advice, elsewhere=elsewhere)


class UnitError(ValueError):
    """A unit of a file holds no text to translate, or can't hold its translation. The others can."""


Details = Mapping[str, bool | float]
"""What is known of a translation beside its text, by name: "truncated", where it lacks an end, and
"confidence". JSON lines have them beside it."""


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
    write: Callable[[str | None, Details], bytes]
    """The output's bytes from the end of the unit before to the end of this one, by the translation, None
    where there is none, and what is known of that.

    Raises UnitError for a translation that can't stand there; never for None."""

    is_markup: bool = False
    """Whether `text` has markup of the server's, so that `raw` is for people."""


FormatName = str
"""A name of `opening.format_names`."""
TextFormat = Literal["html"]
"""The format of texts that have tags."""


@dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """The options of a format that a file's name does not tell."""

    keys: tuple[str, ...] = ()
    """Keys whose strings are translated. JSON lines take one, "text" by default; JSON and YAML take any
    number, all by default."""
    columns: tuple[str, ...] = ()
    """Columns of a table that are translated: names of the first row, or numbers from 1."""
    encoding: str | None = None
    """The encoding of input and output; None is UTF-8, or the one that the file itself declares."""
    join_lines: bool | None = None
    """Whether a line break within a text is taken for a space. None: where the format is of subtitles."""

    def of(self, name: FormatName) -> "FormatOptions":
        """The options with what the format says where they do not."""
        is_joined = name in ("srt", "vtt") if self.join_lines is None else self.join_lines
        return replace(self, join_lines=is_joined)


@dataclass(frozen=True, kw_only=True)
class Input:
    """An input file, open at its beginning and decompressed."""

    name: str
    """The input's name for people."""
    stream: BinaryIO
    """The input's bytes; can be set back to the beginning."""
    position: Callable[[], int]
    """Bytes of the file, as it lies on disk, that were read so far."""
    source_language: str | None = None
    """The language of its texts, where that is known."""
    target_language: str | None = None
    """The language of its translation, where that is known."""
    check: Callable[[], None] = lambda: None
    """Asked now and then while a document is read: raises where nobody wants it any more."""

    def rewound(self) -> "Input":
        """This input, from its first byte."""
        self.stream.seek(0, io.SEEK_SET)
        return self


class Container(Protocol):
    """Packs an output when it is complete: until then it can be cut back to any byte."""

    def pack(self, partial: BinaryIO, target: BinaryIO) -> None:
        """Writes the packed output. The same bytes give the same bytes."""

    def unpacked_size(self, path: Path) -> int | None:
        """The size of a packed file before it was packed, modulo 2^32; None where there is none."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format: it takes the units out of an input file. What they write, one after the other, is the
    output."""

    name: FormatName
    noun: str
    """The plural noun for its units."""
    units: Callable[[Input], Iterable[Unit]]
    """All units in their order, the same ones of the same input whenever it is read.

    Raises FileError, before the first unit, for what is no file of this format."""
    text_format: TextFormat | None = None
    """The format of its texts, where they have one."""
    package: "Callable[[BinaryIO], Container] | None" = None
    """The zip around its texts, by the input that it is like; None of a format that is none."""
    checks_encoding: bool = True
    """Whether `units` itself says what is wrong with an input in another encoding."""


MEMORY_PER_BYTE = 64
"""Bytes of memory that a document may take for each of its own."""
MEMORY_FLOOR = 128 << 20
"""Bytes of memory that any document may take, however small it is."""
ITEM_BYTES = 250
"""The maximum that a tag, a reference or a token takes, while it is read and as a part of a text."""
UNIT_BYTES = 800
"""The maximum that a line takes, beside its text, where all of a file are held."""
TEXT_BYTES = 2000
"""The maximum that a text takes with all that is needed to write its translation."""
_NUM_UNASKED = 512


class Reading:
    """What every reader of a format is given, and takes from for what it makes."""

    def __init__(
        self,
        source: Input,
        num_bytes: int,
        options: FormatOptions = FormatOptions(),
    ) -> None:
        """`num_bytes` is the size of the file as it came."""
        self.options = options
        self.source_language = source.source_language
        self.target_language = source.target_language
        self.check = source.check
        """Raises where nobody wants the document any more."""
        # Half is for the text itself, which is in memory several times.
        self._max_bytes = self._rest = MEMORY_FLOOR + MEMORY_PER_BYTE // 2 * num_bytes
        self._num_asked = 0

    def take(self, num_bytes: int) -> None:
        """Takes some memory. Raises FileError where none is left, and now and then what `check` raises."""
        self._rest -= num_bytes
        if self._rest < 0:
            raise FileError(
                f"it holds so many tags and texts for its size that reading it would take more than "
                f"{self._max_bytes >> 20} MiB of memory, the most that a file of its size may take: split it"
            )
        self._num_asked += 1
        if self._num_asked % _NUM_UNASKED == 0:
            self.check()

    def give_back(self, num_bytes: int) -> None:
        """Gives back what was taken for something that is not held any more."""
        self._rest += num_bytes
